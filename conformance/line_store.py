"""Answers that were had before, kept in a file of JSON Lines."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LineStore(Generic[T]):
    """Values of a dataclass by their key: each is a line, appended as it comes, and the last line of a key counts. A
    line that was being written when its process was stopped is left out. Without a path nothing is kept on disk."""

    def __init__(self, path: Path | None, kind: type[T], key: Callable[[T], str]) -> None:
        self.path, self._key, self._lock = path, key, threading.Lock()
        self.known: dict[str, T] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path and path.exists() else ():
            try:
                value = kind(**json.loads(line))
            except (ValueError, TypeError):
                continue
            self.known[key(value)] = value

    def keep(self, value: T) -> None:
        fields: dict[str, Any] = asdict(value)  # type: ignore[call-overload]
        with self._lock:
            self.known[self._key(value)] = value
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(fields) + "\n")
