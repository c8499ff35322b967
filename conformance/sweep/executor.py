"""What a scheduler needs of the machines: slots that come and go, questions to them, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from conformance.sweep.columns import Column, Place


@dataclass(frozen=True)
class Free:
    """A slot that has nothing to do: a new one, or one that has ended what it was asked."""

    slot: str
    node: str
    place: Place


@dataclass(frozen=True)
class Said:
    """What the worker of a slot said: lines, `begun`, `hello`, `refused`, `died`."""

    slot: str
    messages: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Gone:
    """A slot that is no more, and whether its whole node is."""

    slot: str
    how: str
    node_died: bool


@dataclass(frozen=True)
class Refused:
    """An environment that cannot be made, on any machine."""

    environment: str
    why: str


@dataclass(frozen=True)
class Note:
    """For people."""

    text: str


Event = Free | Said | Gone | Refused | Note


@dataclass
class Question:
    """`message` as slot.Slot.ask takes it; `argv` is what the user typed, for the header."""

    column: Column
    message: dict[str, Any]
    argv: list[str] = field(default_factory=list)

    def encoded(self) -> tuple[Any, ...]:
        """As it travels."""
        column = self.column
        parts = (msgspec.json.encode(column.environment), msgspec.json.encode(column.work))
        return (column.name, *parts, self.argv, self.message)


class Executor(Protocol):
    def poll(self, timeout: float) -> Sequence[Event]:
        """What happened; waits for at most so long. A slot is `Free` once after each question, when everything that it said was told."""

    def ask(self, slot: str, question: Question) -> None: ...

    def ready(self, environment: str) -> bool:
        """Can a question of this environment be asked now? False while it is being made, where that is known."""

    def slots(self) -> int:
        """How many there are."""

    def alive(self) -> bool:
        """Is there a slot, or will there be one?"""

    def close(self) -> None: ...
