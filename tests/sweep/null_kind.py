"""A kind of work that costs nothing: seven cells a unit, and a real record. `--kind tests.sweep.null_kind:Null`; nothing of
torch is imported.

`-m COUNT` says how many units there are. More words, each `NAME=NUMBER`: `kill` is the unit that ends its worker with SIGKILL, `leave` the one
whose worker exits, `slow` the milliseconds that each unit takes, `refuse` any number: the worker refuses to open.
"""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Iterator
from typing import Any

from conformance.errors import UsageError
from conformance.record import SCHEMA
from conformance.revision import revision
from conformance.stage import STAGES
from conformance.sweep.kinds import Message
from conformance.sweep.spec import Work


class Null:
    key = None
    patterns = [f"{stage}/{{}}" for stage in STAGES]

    def __init__(self, work: Work) -> None:
        count, *words = work.micrographs
        self.count, self.targets = int(count), work.targets or ("cpu",)
        self.told = {name: int(number) for name, _, number in (word.partition("=") for word in words)}
        if "refuse" in self.told:
            raise UsageError("this environment is refused")
        if "exit" in self.told:
            os._exit(self.told["exit"])

    def header(self, argv: list[str]) -> dict[str, Any]:
        env = {
            "torch": os.environ.get("NULL_TORCH", "2.15.0"),
            "python": platform.python_version(),
            "machine": platform.machine(),
        }
        env["backends"] = {"null": {"null": env["torch"]}}
        return {
            "schema": SCHEMA,
            "suite": revision(),
            "producers": {"null": "1"},
            "env": env,
            "argv": argv,
            "started": "2026-01-01T00:00:00",
        }

    def units(self) -> list[str]:
        return [f"null/{target}/unit.{number:06}" for target in self.targets for number in range(self.count)]

    def run(self, units: dict[str, list[str]]) -> Iterator[Message]:
        for unit, names in units.items():
            yield {"begun": unit}
            number = int(unit.rpartition(".")[2])
            if number == self.told.get("kill"):
                os.kill(os.getpid(), signal.SIGKILL)
            if number == self.told.get("leave"):
                os._exit(7)
            time.sleep(self.told.get("slow", 0) / 1000)
            yield from self._lines(unit, names, {"verdict": "pass", "reason": ""})

    def lost(self, unit: str, names: list[str], reason: str) -> Iterator[Message]:
        yield from self._lines(unit, names, {"verdict": "error", "reason": reason})

    @staticmethod
    def _lines(unit: str, names: list[str], said: dict[str, str]) -> Iterator[Message]:
        for name in names:
            yield {"unit": unit, "key": name, "line": {"cell": name, **said, "seconds": 0.001}, "texts": {}}
