"""When does a run hang? Its clock counts processor time, so that a busy machine makes no program hang.

A run is over its limit when it has used so many seconds of processor time, or when for so many seconds (`idle`) none
of its processes wanted to run.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable
from pathlib import Path

TICK = 0.5  # seconds between two looks
HERTZ = os.sysconf("SC_CLK_TCK")


def ended_in_time(
    has_ended: Callable[[], bool],
    pid: int,
    limit: float,
    others: Callable[[], Iterable[int]] = tuple,
    idle: float | None = None,
) -> bool:
    """Wait until `has_ended` says so. False once the process with all that it started, and `others` besides, is over
    the limit."""
    idle = limit if idle is None else idle
    busy_at = time.monotonic()
    descriptor = os.pidfd_open(pid)  # readable from the moment when the process has ended
    try:
        while not has_ended():
            if select.select([descriptor], [], [], TICK)[0]:
                continue
            processes = [fields for fields in map(_stat, [pid, *_descendants(pid)]) if fields]
            if sum(map(_seconds, processes)) > limit:
                return has_ended()
            if any(fields[0] in "RD" for fields in processes):
                busy_at = time.monotonic()
            elif time.monotonic() - busy_at > idle:
                if not any((_stat(other) or ["X"])[0] in "RD" for other in others()):
                    return has_ended()
                busy_at = time.monotonic()
        return True
    finally:
        os.close(descriptor)


def _descendants(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        children = [
            int(word) for task in tasks for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        ]
    except OSError:
        return []
    return children + [each for child in children for each in _descendants(child)]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, group, session …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _seconds(fields: list[str]) -> float:
    """Processor time of a process and of its children that have ended."""
    return sum(map(int, fields[11:15])) / HERTZ
