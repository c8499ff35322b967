"""How a run of a subject ended, and whether two runs ended alike."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"0x[0-9a-f]+|-?\d+(\.\d+)?(e[-+]?\d+)?")
LOGGED = re.compile(r"[VIWEC]\d{4} \d\d:\d\d:\d\d")  # a line of torch's own log
ERROR_LINE = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Failed|Unsupported|Interrupt|Warning|Exit|[a-z]\w*)): ?(.*)$"
)


@dataclass(frozen=True)
class Ending:
    """code     what the shell would see: 0, the exit code, or minus the signal; None where it ran out of time
    error    the exception that ended it, in one line
    line     of the program, where the exception passed, or where it was when a signal or the clock ended it
    inside   did the exception come from below the program's own code?
    output   the last of what it printed
    events   what its processes wrote into the journal
    """

    code: int | None
    error: str = ""
    line: int = 0
    inside: bool = False
    output: str = ""
    seconds: float = 0.0
    events: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def right(self) -> bool:
        return self.code == 0

    @property
    def kind(self) -> str:
        """hang, signal, crash (an exception of the compiler's), raise (one of the program's own, as an assertion),
        exit"""
        if self.code is None:
            return "hang"
        if self.code < 0:
            return "signal"
        if self.error:
            return "crash" if self.inside else "raise"
        return "exit"

    def told(self) -> str:
        """In one line, for people."""
        at = f" at line {self.line}" if self.line else ""
        if self.code is None:
            return f"it does not end{at and f', it stays{at}'}"
        if self.code < 0:
            return f"it dies of signal {-self.code} ({_signal_name(-self.code)}){at}"
        if self.error:
            return self.error
        printed = (line.strip() for line in reversed(self.output.splitlines()))
        last = next((line for line in printed if line and not LOGGED.match(line)), "")
        return f"exit {self.code}" + (f": {last[:200]}" if last else "")

    def last_lines(self, count: int = 12) -> str:
        """The end of what it printed, without torch's own log."""
        lines = [line.rstrip() for line in self.output.splitlines() if line.strip() and not LOGGED.match(line)]
        return "\n".join(lines[-count:])

    def named(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == event]

    def like(self, other: Ending) -> bool:
        """Did both fail, and in the same way? Numbers in messages may differ."""
        if self.right or other.right or self.kind != other.kind:
            return False
        if self.kind in ("raise", "crash"):
            return _shape(self.error) == _shape(other.error)
        return self.code == other.code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _shape(error: str) -> str:
    """An error's type and the beginning of its message, without numbers."""
    head, _, message = error.partition(": ")
    return f"{head}: {NUMBER.sub('#', message)[:40]}"


def of_the_compiler(file: str) -> bool:
    """Is it one of torch's files, and none of those that programs compare results with (`assert_close`)?"""
    return "/torch/" in file and "/torch/testing/" not in file


def from_text(code: int | None, output: str) -> tuple[str, bool]:
    """The exception that a traceback in the output ends with, and whether it came from torch."""
    at = output.rfind("Traceback (most recent call last)")
    if code in (0, None) or at < 0:
        return "", False
    lines = output[at:].splitlines()
    found = [line for line in lines[1:] if line and not line.startswith((" ", "\t")) and ERROR_LINE.match(line)]
    if not found:
        bare = [line for line in lines[1:] if re.fullmatch(r"[A-Za-z_][\w.]*", line)]
        return (bare[0].rpartition(".")[2] if bare else ""), False
    match = ERROR_LINE.match(found[0])
    assert match
    files = re.findall(r'File "([^"]+)"', output[at:])
    inside = bool(files) and of_the_compiler(Path(files[-1]).as_posix())
    return f"{match[1].rpartition('.')[2]}: {match[2]}".rstrip(": "), inside
