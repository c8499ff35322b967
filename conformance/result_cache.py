"""Cells that ran before, for as long as nothing changed that they could depend on."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from conformance import environment
from conformance.errors import UsageError
from conformance.record import SCHEMA, Run, Writer, read, texts_folder

KEPT = {"pass", "fail", "fallback", "unsupported", "unavailable", "blocked", "xfail", "xpass"}  # a crash is always run again
MOST = 8  # environments remembered


def home() -> Path:
    return Path(os.environ.get("CONFORMANCE_HOME") or environment.ROOT / ".conformance") / "cells"


class Store:
    def __init__(self, micrographs: str, expectations: str, no_baseline: bool) -> None:
        hashed = hashlib.sha256(environment.fingerprint().encode())
        for folder, pattern in ((micrographs, "*.py"), (expectations, "*.toml"), (str(environment.ROOT / "reports"), "*.jsonl")):
            for file in sorted(Path(folder).glob(pattern)):
                hashed.update(file.name.encode() + file.read_bytes())
        hashed.update(repr(no_baseline).encode())
        self.path = home() / f"{hashed.hexdigest()[:16]}.jsonl"

    def give(self, cells: Iterable[str], writer: Writer) -> int:
        """Write into a record what is known of these cells; say of how many."""
        try:
            known = read(self.path)
        except UsageError:
            return 0
        given = [known.cells[name] for name in cells if name in known.cells]
        for line in given:
            for key in line.get("texts", {}).values():
                _link(texts_folder(self.path) / f"{key}.txt", texts_folder(writer.path))
            writer.add({**line, "reused": True})
        return len(given)

    def take(self, run: Run) -> None:
        """Remember the cells of a run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        known = {} if new else read(self.path).cells
        with self.path.open("a", encoding="utf-8") as file:
            if new:
                file.write(json.dumps({"schema": SCHEMA, "suite": environment.revision(), "env": {}}) + "\n")
            for name, line in run.cells.items():
                if name not in known and line["verdict"] in KEPT:
                    for key in line.get("texts", {}).values():
                        _link(texts_folder(run.path) / f"{key}.txt", texts_folder(self.path))
                    file.write(json.dumps({k: v for k, v in line.items() if k != "reused"}, ensure_ascii=False) + "\n")
        self._forget()

    def _forget(self) -> None:
        records = sorted(self.path.parent.glob("*.jsonl"), key=lambda f: f.stat().st_mtime)
        for old in records[:-MOST]:
            shutil.rmtree(texts_folder(old), ignore_errors=True)
            old.unlink(missing_ok=True)


def _link(file: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / file.name
    if file.exists() and not target.exists():
        try:
            os.link(file, target)
        except OSError:
            shutil.copy(file, target)
