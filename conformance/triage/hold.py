"""How the compiles of one run are held, and what such a run writes down.

A `Hold` says at which rung of a compiler's ladder every compile of a process stops, and which single steps are turned
off. It travels to other processes as JSON. A `Journal` is a file to which all processes of a run append what they
see, a line an event, so that nothing is lost when one of them dies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

HOLD_VARIABLE = "CONFORMANCE_HOLD"  # in the environment of processes that a held program starts
JOURNAL_VARIABLE = "CONFORMANCE_JOURNAL"


@dataclass(frozen=True)
class Hold:
    """rung      where every compile stops; "whole" is the program as it is
    off       steps that are left out, by their keys ("pass 12", "decomposition aten.silu.default")
    settings  of the compiler ("inductor.max_fusion_size": 1)
    record    what is written down besides the way that compiles take: "steps"
    """

    rung: str = "whole"
    off: tuple[str, ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()
    record: tuple[str, ...] = ()

    def without(self, *keys: str) -> Hold:
        return replace(self, off=tuple(sorted({*self.off, *keys})))

    def having(self, settings: Mapping[str, Any]) -> Hold:
        """With these settings, too."""
        return replace(self, settings=tuple(sorted({**dict(self.settings), **settings}.items())))

    def recording(self, *what: str) -> Hold:
        return replace(self, record=tuple(sorted({*self.record, *what})))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Hold:
        data = json.loads(text)
        settings = tuple((name, value) for name, value in data["settings"])
        return cls(data["rung"], tuple(data["off"]), settings, tuple(data["record"]))

    def __str__(self) -> str:
        off = f" without {', '.join(self.off)}" if self.off else ""
        settings = f" with {', '.join(f'{name}={value}' for name, value in self.settings)}" if self.settings else ""
        return f"{self.rung}{off}{settings}"


@dataclass
class Journal:
    """Events of a run. Several processes may write: each line is written at once."""

    path: Path
    _file: int = field(default=-1, repr=False)
    _owner: int = field(default=0, repr=False)

    def write(self, event: str, **facts: Any) -> None:
        if self._owner != os.getpid():
            self._file, self._owner = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), os.getpid()
        line = json.dumps({"event": event, "pid": os.getpid(), **facts}, default=str)
        os.write(self._file, (line + "\n").encode("utf-8", "backslashreplace"))

    def events(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for line in self.path.read_text("utf-8", "replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # cut off when its process died
