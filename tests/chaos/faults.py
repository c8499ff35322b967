"""A pytest plugin: a backend that does everything right, except for one micrograph, where it does what CONFORMANCE_CHAOS names."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from conformance import backends
from conformance.backends.base import Backend, Case, Compiled
from conformance.stage import Stage
from conformance.target import Target
from conformance.trace import Observation

GUILTY = "small.guilty"


def segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def sigkill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sigstop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def exit_at_once() -> None:
    os._exit(3)


def system_exit() -> None:
    sys.exit("enough of this")


def keyboard_interrupt() -> None:
    raise KeyboardInterrupt("not by a person")


def closed_stdout() -> None:
    sys.stdout.close()
    print("into a closed file")


def hang_in_python() -> None:
    while True:
        time.sleep(60)


def hang_in_c() -> None:
    re.match(r"(a+)+$", "a" * 48 + "b")  # holds the GIL


def memory() -> None:
    held = [bytearray(b"x") * (64 << 20) for _ in range(24)]  # 1.5 GiB, where 1 GiB is the limit
    time.sleep(60 + len(held))


def descriptors() -> None:
    held = []
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))


def output_flood() -> None:
    for _ in range(200_000):
        os.write(1, b"x" * 499 + b"\n")
    raise RuntimeError("after a flood")


def bad_text() -> None:
    raise ValueError("a lone \udcff surrogate, \x1b[31mred\x1b[0m and a nul \x00")


def unpicklable() -> None:
    raise type("Local", (Exception,), {"__reduce__": lambda self: (_ for _ in ()).throw(TypeError("no"))})(
        "cannot be pickled"
    )


# The fault, and what the reason of the guilty cell must contain.
FAULTS: dict[str, tuple[Callable[[], None], str, str]] = {
    "segfault": (segfault, "error", "SIGSEGV"),
    "sigkill": (sigkill, "error", "SIGKILL"),
    "sigstop": (sigstop, "timeout", "stopped by a signal"),
    "exit_at_once": (exit_at_once, "error", "exit code 3"),
    "system_exit": (system_exit, "error", "SystemExit: enough of this"),
    "keyboard_interrupt": (keyboard_interrupt, "error", "KeyboardInterrupt: not by a person"),
    "closed_stdout": (closed_stdout, "error", "closed file"),
    "hang_in_python": (hang_in_python, "timeout", "in hang_in_python"),
    "hang_in_c": (hang_in_c, "timeout", "in match"),
    "memory": (memory, "error", "GiB of memory"),
    "descriptors": (descriptors, "error", "Too many open files"),
    "output_flood": (output_flood, "error", "after a flood"),
    "bad_text": (bad_text, "error", r"a lone \udcff surrogate, \x1b[31mred"),
    "unpicklable": (unpicklable, "error", "cannot be pickled"),
}


class ChaosCompiled(Compiled):
    def __init__(self, case: Case) -> None:
        self.case, self.module = case, case.module()

    def __call__(self, *inputs: Any) -> Any:
        time.sleep(float(os.environ.get("CONFORMANCE_CHAOS_SLOW", "0")))
        return self.module(*inputs)

    def observe(self, stage: Stage) -> Observation:
        facts: dict[Stage, dict[str, Any]] = {
            Stage.CAPTURE: {"graphs": 1, "breaks": 0},
            Stage.CODEGEN: {"programs": 1},
            Stage.CACHE: {"first": {"fx_miss": 1}, "again": {"fx_hit": 1}, "fresh_process": {"fx_hit": 1}},
        }
        return Observation(facts.get(stage, {}))


class ChaosBackend(Backend):
    name = "chaos"

    def versions(self) -> dict[str, str]:
        return {"chaos": "1"}

    def unavailable(self, target: Target) -> dict[Stage, str]:
        return {}

    def compile(self, case: Case) -> Compiled:
        if case.micrograph.name() == GUILTY:
            FAULTS[os.environ["CONFORMANCE_CHAOS"]][0]()
        return ChaosCompiled(case)


backends.BUILTIN["chaos"] = f"{__name__}:ChaosBackend"
