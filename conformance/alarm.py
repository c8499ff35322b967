"""An alarm around a piece of work: the one signal that tells a process that its time is up."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def alarm(seconds: float, ring: Callable[..., Any] | signal.Handlers, again: float = 0.0) -> Iterator[None]:
    """`ring` handles the signal when the time is up, and every `again` seconds after that. An alarm that was set outside goes on
    afterwards. For the main thread alone: Python handles signals nowhere else."""
    before = signal.signal(signal.SIGALRM, ring)
    outside = signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outside)
        signal.signal(signal.SIGALRM, before)
