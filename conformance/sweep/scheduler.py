"""Hands out the work of all columns to the slots that there are, and takes in what they say.

A slot stays with its column while there is work, so that its worker imports torch once; then it takes the first column, in the order of the
sweep, that its machine can do. Lines are written as they come, so that a sweep that is killed loses nothing but what was being worked on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.sweep.columns import Column, Place, Seconds, work_at
from conformance.sweep.executor import Event, Executor, Free, Gone, Note, Question, Refused, Said
from conformance.sweep.shards import Shard
from conformance.sweep.spec import Sweep

POLL = 0.5  # seconds
OPENINGS = 2  # workers of a column that may die before they say hello
NOBODY = 120.0  # seconds to wait for a node when none is left


@dataclass
class SlotState:
    """What the scheduler knows of a slot: where it is, what it was asked last, and which columns it must not be asked of again."""

    node: str
    place: Place
    column: Column | None = None
    opened: str = ""  # the column that its worker has open
    opening: bool = False
    busy: bool = False


@dataclass
class Scheduler:
    """say: told what people should know, in lines. tick: called now and then, for progress."""

    sweep: Sweep
    executor: Executor
    folder: Path
    seconds: Seconds
    argv: list[str]
    commit: str = ""
    resume: bool = False
    say: Callable[[str], None] = lambda _: None
    tick: Callable[[], None] = lambda: None
    columns: list[Column] = field(default_factory=list)
    slots: dict[str, SlotState] = field(default_factory=dict)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)  # (node, column) → why
    failed: dict[str, str] = field(default_factory=dict)  # environment → why it cannot be made at all
    places: set[Place] = field(default_factory=set)
    _lonely: float = 0.0  # since when there has been no slot

    def run(self) -> None:
        """Until everything has ended. Raises UsageError where it cannot go on."""
        try:
            while not self._over():
                for event in self.executor.poll(POLL):
                    self._take(event)
                self._hand_out()
                self._somebody_there()
                self.tick()
        finally:
            for column in self.columns:
                column.close()

    def _over(self) -> bool:
        return bool(self.places) and all(column.finished for column in self.columns)

    # ------------------------------------------------------------------------------------------------ events

    def _take(self, event: Event) -> None:
        if isinstance(event, Free):
            self._free(event)
        elif isinstance(event, Said):
            state = self.slots[event.slot]
            for message in event.messages:
                self._said(event.slot, state, message)
        elif isinstance(event, Gone):
            gone = self.slots.pop(event.slot, None)
            if gone is not None:
                self._lost(event.slot, gone, event.how, event.node_died)
        elif isinstance(event, Refused):
            self.failed[event.environment] = event.why
            for column in self._of(event.environment):
                self._fail(column, event.why)
        elif isinstance(event, Note):
            self.say(event.text)

    def _free(self, event: Free) -> None:
        state = self.slots.setdefault(event.slot, SlotState(event.node, event.place))
        if event.place not in self.places:
            self.places.add(event.place)
            self._add_columns(event.place)
        if state.column is not None and (shard := state.column.running.pop(event.slot, None)) and shard.units:
            self._back(state.column, shard, "the worker ended without a line for it", node_died=False)
        state.busy = state.opening = False

    def _add_columns(self, place: Place) -> None:
        for environment in self.sweep.environments:
            if (work := work_at(environment.work, place)) is not None:
                column = Column(environment, place, work)
                self.columns.append(column)
                if environment.name in self.failed:
                    self._fail(column, self.failed[environment.name])
        order = {one.name: n for n, one in enumerate(self.sweep.environments)}
        self.columns.sort(key=lambda column: order[column.environment.name])

    def _said(self, slot: str, state: SlotState, message: dict[str, Any]) -> None:
        column = state.column
        if column is None:
            return
        if "line" in message:
            self._write(column, slot, message)
        elif "begun" in message:
            if slot in column.running:
                column.running[slot].begun = message["begun"]
        elif "hello" in message:
            self._hello(state, column, message)
        elif "refused" in message:
            state.opened = ""
            self._refuse(state, column, message["refused"], slot)
        elif "died" in message:
            state.opened = ""
            self._lost(slot, state, message["died"], node_died=False)

    def _write(self, column: Column, slot: str, message: dict[str, Any]) -> None:
        try:
            column.add(slot, message)
        except UsageError as error:  # the disk is full: this record ends here, others may be elsewhere
            if column.state != "failed":
                self._fail(column, str(error))

    def _hello(self, state: SlotState, column: Column, message: dict[str, Any]) -> None:
        message["hello"]["commit"] = self.commit or message["hello"].get("commit", "")
        if column.state == "opening" and message["units"]:
            try:
                column.open(message, self.folder, self.resume, self.seconds)
            except (UsageError, OSError) as error:
                self._fail(column, str(error))
                return
        elif column.state == "opening":
            self._fail(column, "there is nothing to run: no unit of work matches")
            return
        elif misfit := column.misfit(message["hello"]):
            self._refuse(state, column, f"its answers do not fit into the record of the others: {misfit}")
            return
        state.opened = column.name

    def _refuse(self, state: SlotState, column: Column, why: str, slot: str = "") -> None:
        """A node cannot do a column. Where no other node can, either, the column has failed."""
        self.refused[state.node, column.name] = why
        if (shard := column.running.pop(slot, None)) is not None:
            self._back(column, shard, why, node_died=True)
        able = {one.node for one in self.slots.values() if one.place == column.place} - self._refusers(column)
        if able:
            self.say(f"{column.name} is not run on {state.node}: {why}")
            column.state = "new" if column.state == "opening" else column.state
        else:
            self._fail(column, why)

    def _refusers(self, column: Column) -> set[str]:
        return {node for node, name in self.refused if name == column.name}

    def _lost(self, slot: str, state: SlotState, how: str, node_died: bool) -> None:
        """A worker, a slot or a whole node is gone, in the middle of something or not."""
        column = state.column
        if column is None:
            return
        shard = column.running.pop(slot, None)
        if shard is not None:
            self._back(column, shard, how, node_died)
        elif state.opening:
            column.deaths += not node_died
            column.state = "new" if column.state == "opening" else column.state
            if column.deaths >= OPENINGS and column.state == "new":
                self._fail(column, how)
        state.opening = False

    def _back(self, column: Column, shard: Shard, how: str, node_died: bool) -> None:
        if shard.reason and not node_died:  # not even the line that says so could be made
            self._fail(column, f"{next(iter(shard.units))}: {shard.reason}, and the next worker as well: {how}")
        else:
            column.pile.give_back(shard, how, node_died)

    def _fail(self, column: Column, why: str) -> None:
        column.fail(why)
        self.say(f"{column.name}: {why}")

    # ----------------------------------------------------------------------------------------------- handing out

    def _hand_out(self) -> None:
        for name, state in self.slots.items():
            if not state.busy and (column := self._next_column(state)) is not None:
                self._ask(name, state, column)

    def _next_column(self, state: SlotState) -> Column | None:
        fitting = [column for column in self._candidates(state) if (state.node, column.name) not in self.refused]
        for column in fitting:
            if column.name == state.opened and column.pile:
                return column
        return next((column for column in fitting if column.state == "new" or column.pile), None)

    def _candidates(self, state: SlotState) -> Iterator[Column]:
        for column in self.columns:
            usable = column.state in ("new", "open") and column.place == state.place
            if usable and self.executor.ready(column.environment.name):
                yield column

    def _ask(self, slot: str, state: SlotState, column: Column) -> None:
        state.busy, state.column = True, column
        if column.state == "new" or state.opened != column.name:
            state.opened, state.opening = "", True
            listed = column.state == "new"
            column.state = "opening" if listed else column.state
            self.executor.ask(slot, Question(column, {"list": listed}, self.argv))
            return
        shard = column.pile.take(self._sharing(column))
        column.running[slot] = shard
        if shard.reason:
            (unit, names) = next(iter(shard.units.items()))
            message: dict[str, Any] = {"lost": unit, "names": [*names], "reason": shard.reason}
        else:  # a copy: the shard's own lists become shorter as lines come
            message = {"run": {unit: [*names] for unit, names in shard.units.items()}}
        self.executor.ask(slot, Question(column, message, self.argv))

    def _sharing(self, column: Column) -> int:
        return sum(state.place == column.place for state in self.slots.values())

    # -------------------------------------------------------------------------------------------------- the end

    def _of(self, environment: str) -> Iterable[Column]:
        return (column for column in self.columns if column.environment.name == environment)

    def _somebody_there(self) -> None:
        """With no node left there is nothing to wait for, after a while."""
        if self.slots:
            self._lonely = 0.0
            self._someone_able()
        elif not self._lonely:
            self._lonely = time.monotonic()
        elif time.monotonic() - self._lonely > NOBODY or not self.executor.alive():
            raise UsageError("no machine is left to run on: add --resume to go on when there is one")

    def _someone_able(self) -> None:
        """A column whose machines are all gone, or have all refused it, has failed."""
        for column in self.columns:
            if not column.finished and not column.running and column.state != "opening":
                there = {state.node for state in self.slots.values() if state.place == column.place}
                if there and there <= self._refusers(column):
                    self._fail(column, next(why for (_, name), why in self.refused.items() if name == column.name))
