"""A column: one environment on one kind of machine, with one file that all of its lines go into."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from conformance.errors import UsageError
from conformance.json_line import json_line
from conformance.record import is_unexpected
from conformance.record_writer import Writer
from conformance.sweep.shards import Pile, Shard
from conformance.sweep.spec import Environment, Work

Seconds = Callable[[str], float]
TRAVELS = (
    "suite",
    "producers",
    "expectations",
)  # of a header: what must be the same wherever a line of the column is made


class Place(msgspec.Struct, frozen=True):
    """A kind of machine: its architecture and, where GPU code runs, its GPU."""

    machine: str
    gpu: str = ""

    def __str__(self) -> str:
        return re.sub(r"[^\w.]+", "-", self.gpu.lower()).strip("-") or self.machine


class Sink(Protocol):
    """Where lines go. `done` has the names of those that are there."""

    path: Path

    def __contains__(self, name: str) -> bool: ...
    def add(self, name: str, line: Mapping[str, Any], texts: Mapping[str, str]) -> None: ...
    def close(self) -> None: ...


class RecordSink:
    """A record of cells."""

    def __init__(self, path: Path, header: Mapping[str, Any], resume: bool) -> None:
        self.path = path
        self.writer = Writer(path, header, resume=resume, keep=False)

    def __contains__(self, name: str) -> bool:
        return name in self.writer.done

    def add(self, name: str, line: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        self.writer.add(line, texts)

    def close(self) -> None:
        self.writer.close()


class LinesSink:
    """JSON Lines of another kind than cells, each with its name in the field `key`; the lock keeps a second sweep out."""

    def __init__(self, path: Path, key: str, resume: bool) -> None:
        self.path, self.done = path, set()  # type: ignore[var-annotated]
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("ab+")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise UsageError(
                f"{path} is being written by another sweep: wait for it, or give -o another folder"
            ) from None
        if not resume:
            self.file.truncate(0)
        self.file.seek(0)
        raw = self.file.read()
        self.file.truncate(raw.rfind(b"\n") + 1)  # a line that was being written when the sweep was killed
        self.done = {json.loads(line)[key] for line in raw[: raw.rfind(b"\n") + 1].splitlines()}

    def __contains__(self, name: str) -> bool:
        return name in self.done

    def add(self, name: str, line: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        if name not in self.done:
            self.done.add(name)
            self.file.write(json_line(line) + b"\n")
            self.file.flush()

    def close(self) -> None:
        self.file.close()


@dataclass
class Column:
    """state: `new`, `opening`, `open`, `failed` (with `problem`); an open column is done when its pile is empty and nobody works on it.
    `work` is the environment's own, less the targets that this place does not run."""

    environment: Environment
    place: Place
    work: Work
    state: str = "new"
    problem: str = ""
    header: dict[str, Any] = field(default_factory=dict)
    patterns: list[str] = field(default_factory=list)
    pile: Pile = field(default_factory=lambda: Pile({}))
    running: dict[Any, Shard] = field(default_factory=dict)  # by slot
    sink: Sink | None = None
    units: int = 0
    total: int = 0  # lines
    had: int = 0  # lines that the file had before
    lines: int = 0  # lines that came
    unexpected: int = 0
    deaths: int = 0  # of workers while they opened the column

    @property
    def name(self) -> str:
        return f"{self.environment.name}-{self.place}"

    @property
    def finished(self) -> bool:
        return self.state == "failed" or (self.state == "open" and not self.pile and not self.running)

    def open(self, hello: Mapping[str, Any], folder: Path, resume: bool, seconds: Seconds) -> None:
        """The first worker said hello: what there is to do, less what the file has already."""
        self.header, self.patterns, key = dict(hello["hello"]), list(hello["patterns"]), hello.get("key")
        path = folder / f"{self.name}{'' if key is None else f'.{_file_name(self.work.kind)}'}.jsonl"
        if not resume and path.exists() and path.stat().st_size:
            raise UsageError(f"{path} is there already: add --resume to go on with it, or give -o another folder")
        self.sink = RecordSink(path, self.header, resume) if key is None else LinesSink(path, key, resume)
        names = {unit: [pattern.format(unit) for pattern in self.patterns] for unit in hello["units"]}
        left = {unit: missing for unit, all_ in names.items() if (missing := [n for n in all_ if n not in self.sink])}
        self.units, self.total = len(names), sum(map(len, names.values()))
        self.had = self.total - sum(map(len, left.values()))
        share = {unit: seconds(unit) * len(missing) / len(self.patterns) for unit, missing in left.items()}
        self.pile = Pile(share)
        self.pile.fill(left)
        self.state = "open"

    def misfit(self, header: Mapping[str, Any]) -> str:
        """Why lines of this worker cannot go into the column's file; empty where they can."""
        for part in TRAVELS:
            if header.get(part) != self.header.get(part):
                return f"its {part} is {_short(header.get(part))}, and the record's is {_short(self.header.get(part))}"
        mine, ours = header.get("env", {}), self.header.get("env", {})
        for part in sorted({*mine, *ours}):
            if mine.get(part) != ours.get(part):
                return f"its {part} is {_short(mine.get(part))}, and the record's is {_short(ours.get(part))}"
        return ""

    @property
    def record(self) -> Path | None:
        """The file, where it is a record of cells."""
        return self.sink.path if isinstance(self.sink, RecordSink) else None

    def add(self, slot: Any, message: Mapping[str, Any]) -> None:
        """A line has come."""
        assert self.sink is not None
        if message["key"] not in self.sink:
            self.sink.add(message["key"], message["line"], message["texts"])
            self.lines += 1
            self.unexpected += is_unexpected(message["line"])
        if (shard := self.running.get(slot)) is not None:
            shard.ended(message["unit"], message["key"])

    def fail(self, problem: str) -> None:
        """Nothing more is run in this column; what its file has stays."""
        self.state, self.problem = "failed", problem

    def close(self) -> None:
        if self.sink is not None:
            self.sink.close()

    def left(self) -> float:
        """Seconds of recorded cost that are still to be done, those that are being worked on included."""
        cost = self.pile.cost
        waiting = sum(cost[unit] for unit in self.pile.units())
        return waiting + sum(cost[unit] for shard in self.running.values() for unit in shard.units)


def _file_name(kind: str) -> str:
    return re.sub(r"\W+", "-", kind.rpartition(":")[2].lower())


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def work_at(work: Work, place: Place) -> Work | None:
    """The part of the work that belongs to a place: code for a GPU that is present runs where one is, everything else on any machine."""
    if work.kind == "selftest":
        return None if place.gpu else work
    targets = tuple(target for target in work.targets if (target == "cuda") == bool(place.gpu))
    if place.gpu:
        return msgspec.structs.replace(work, targets=targets) if targets else None
    return msgspec.structs.replace(work, targets=targets) if targets or not work.targets else None
