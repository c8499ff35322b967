"""A grammar: a program text with slots, and for each slot a table of what may stand there.

The choice of one entry for each slot is a program. The first entry of a table is the plainest: a program becomes smaller
by choosing it. Texts stand in the tables of this package only; a program that is read from a file is a list of keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

Choices = Mapping[str, str]  # slot → key of its table
Table = Mapping[str, str]  # key → text
SLOT = re.compile(r"\$(\w+)")


def names(*texts: str) -> dict[str, str]:
    """A table whose keys are its texts."""
    return {text: text for text in texts}


@dataclass(frozen=True)
class Grammar:
    """name     of the class of programs
    text     with `$slot` where an entry of a table stands; alone on its line it may have many lines, or none. The
             text defines `play(compile)`, or `f`, `inputs()` and, where the caller goes on, `after(out, args)`; `loss(out)`
             where gradients are wanted
    slots    the tables
    rungs    where it is worth while to play these programs, the cheapest first (see `rungs.py`)
    cause    slots that say what is at fault, should a program be wrong; "a|b" is a, and b where a is plain
    allowed  which combinations have an answer that eager promises
    signs    are signs of zeros compared?
    by_place is what differs only a matter of the values that a program uses, and no part of its cause?
    helpers  definitions that stand before the program where their name is called in it
    backends the compilers that these programs are written for; empty: all of them
    """

    name: str
    text: str
    slots: Mapping[str, Table]
    rungs: tuple[str, ...]
    cause: tuple[str, ...]
    allowed: Callable[[Choices], bool] = lambda choices: True
    signs: bool = False
    by_place: bool = False
    helpers: Mapping[str, str] = field(default_factory=dict)
    backends: tuple[str, ...] = ()

    @cached_property
    def alone(self) -> bool:
        """Must each program be compiled by itself? Those that only give `f` and its inputs can share a compile."""
        return "def play(" in self.text

    @cached_property
    def exportable(self) -> bool:
        """Is it one function of tensors, which eager takes and of which no gradients are wanted?"""
        return not self.alone and "def loss(" not in self.text and not self.name.startswith("refused")

    def plainest(self) -> dict[str, str]:
        return {slot: next(iter(table)) for slot, table in self.slots.items()}

    def draw(self, random: Random, weight: Callable[[str, str], float]) -> dict[str, str]:
        """A program that is allowed; `weight` says how much an entry of a slot is wanted."""
        for _ in range(200):
            choices = {
                slot: random.choices(list(table), [weight(slot, key) for key in table])[0]
                for slot, table in self.slots.items()
            }
            if self.allowed(choices):
                return choices
        return self.plainest()

    def smaller(self, choices: Choices) -> Iterator[dict[str, str]]:
        """Programs with one slot plainer: the plainest entry, then the next."""
        for slot, table in self.slots.items():
            keys = list(table)
            for key in keys[: min(2, keys.index(choices[slot]))]:
                if self.allowed(changed := {**choices, slot: key}):
                    yield changed

    def neighbours(self, choices: Choices, random: Random) -> dict[str, str]:
        """The program with one slot drawn anew."""
        for _ in range(50):
            slot = random.choice(list(self.slots))
            changed = {**choices, slot: random.choice(list(self.slots[slot]))}
            if changed != choices and self.allowed(changed):
                return changed
        return dict(choices)

    def source(self, choices: Choices) -> str:
        """The text of a program."""
        return self.filled({slot: table[choices[slot]] for slot, table in self.slots.items()})

    def filled(self, entries: Mapping[str, str]) -> str:
        """The text with these entries in its slots, and the helpers that it calls before it."""
        text = self.text
        for _ in range(4):  # entries may hold slots themselves
            text = "\n".join(part for line in text.splitlines() for part in _filled(line, entries))
        needed = [helper.strip("\n") + "\n\n" for name, helper in self.helpers.items() if f"{name}(" in text]
        return "".join(needed) + text.strip("\n") + "\n"

    def problem(self, choices: object) -> str:
        """What is wrong with choices that were read from a file; empty if nothing is."""
        if not isinstance(choices, dict) or {*choices} != {*self.slots}:
            return f"it does not choose for the slots {', '.join(self.slots)}"
        for slot, key in choices.items():
            if key not in self.slots[slot]:
                return f"{str(key)[:60]!r} is no entry of the slot {slot}"
        return ""

    def cause_of(self, choices: Choices) -> tuple[str, ...]:
        """What is at fault in a program that is as small as can be."""
        odd = [
            self.odd(choices, group.split("|"))[:1] if "|" in group else self.odd(choices, [group])
            for group in self.cause
        ]
        return tuple(f"{slot}={choices[slot]}" for group in odd for slot in group)

    def odd(self, choices: Choices, slots: Iterable[str]) -> list[str]:
        """Those of the slots that are not as plain as can be."""
        return [slot for slot in slots if choices[slot] != next(iter(self.slots[slot]))]


def parts(text: str) -> dict[str, tuple[str, ...]]:
    """Parts written one after the other: `## name`, then sections with `---` between them."""
    found = {}
    for block in re.split(r"^## ", text, flags=re.M)[1:]:
        name, _, rest = block.partition("\n")
        sections = tuple(section.strip("\n") for section in re.split(r"^---$", rest, flags=re.M))
        found[name.strip()] = sections if len(sections) > 1 else ("", *sections)
    return found


def _filled(line: str, entries: Mapping[str, str]) -> Iterator[str]:
    """A line with its slots filled; a slot alone on its line takes as many lines as its entry has."""
    alone = re.fullmatch(r"(\s*)\$(\w+)", line)
    if alone and alone[2] in entries:
        yield from (alone[1] + part for part in entries[alone[2]].splitlines())
    else:
        yield SLOT.sub(lambda found: entries.get(found[1], found[0]), line)
