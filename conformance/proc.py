"""What Linux says of other processes, and how they are ended."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def kill(pid: int) -> None:
    for end in (os.killpg, os.kill):
        with suppress(OSError):
            end(pid, signal.SIGKILL)


def _fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def state_of(pid: int) -> str:
    return next(iter(_fields(pid)), "")


def is_zombie(pid: int) -> bool:
    return state_of(pid) == "Z"


def resident(pid: int) -> int:
    """Bytes of memory that belong to this process alone; what it shares with the one it was forked from does not count."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
