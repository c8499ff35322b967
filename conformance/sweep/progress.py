"""The progress of a sweep: one bar over all columns in a terminal, a line now and then elsewhere. The time left comes from recorded costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table

from conformance.report.style import counted
from conformance.sweep.columns import Column

EVERY = 20.0  # seconds between two lines where there is no terminal
DRAW = 0.5  # and between two drawings where there is one


class SweepProgress:
    """`expected`: seconds of recorded cost of the environments that have not said yet what there is to do."""

    def __init__(self, console: Console, slots: Callable[[], int], expected: dict[str, float]) -> None:
        self.console, self.slots, self.expected = console, slots, expected
        self.columns: Sequence[Column] = ()
        self.started = self.last = time.monotonic()
        self.most = 0.0  # seconds of cost at the first look
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> SweepProgress:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def tick(self) -> None:
        now = time.monotonic()
        if now - self.last < (DRAW if self.console.is_terminal else EVERY):
            return
        self.last = now
        if self.console.is_terminal:
            self.live.update(self._table(), refresh=True)
        else:
            self.console.print(self.line(), style="dim", markup=False, highlight=False, soft_wrap=True)

    def line(self) -> str:
        had = sum(column.had + column.lines for column in self.columns)
        total = sum(column.total for column in self.columns)
        bad = sum(column.unexpected for column in self.columns)
        waiting = len([column for column in self.columns if column.state in ("new", "opening")])
        more = f", {counted(waiting, 'column')} not begun" if waiting else ""
        return f"{had}/{total} lines, {bad} unexpected{more}, {self._left()}"

    def _left(self) -> str:
        """Time left: what this sweep took for a second of recorded cost, times the cost that is left."""
        opened = {column.environment.name for column in self.columns if column.state not in ("new", "opening")}
        left = sum(column.left() for column in self.columns if column.state == "open")
        left += sum(seconds for name, seconds in self.expected.items() if name not in opened)
        self.most = max(self.most, left)
        done, taken = self.most - left, time.monotonic() - self.started
        if done < 0.03 * self.most or taken < 10:
            return f"about {duration(left / max(self.slots(), 1))} left by earlier records"
        return f"about {duration(left * taken / done)} left"

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for column in self.columns:
            table.add_row(column.name, *_state(column))
        table.add_row("all", self.line())
        return table


def _state(column: Column) -> tuple[str, str]:
    if column.state == "failed":
        return "failed", column.problem[:100]
    if column.state != "open":
        return "waiting" if column.state == "new" else "importing", ""
    share = (column.had + column.lines) / max(column.total, 1)
    bar = "━" * round(20 * share)
    at = next((shard.begun for shard in column.running.values() if shard.begun), "")
    return f"{column.had + column.lines}/{column.total}", f"{bar:20} {column.unexpected} unexpected  {at}"


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
