"""What does not end is cut off: by a signal, or, where Python cannot be interrupted, by ending the process."""

from __future__ import annotations

import faulthandler
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance.alarm import alarm

PATIENCE = 180.0  # seconds for one call, its compile included, on a busy machine
GRACE = 15.0  # how much later the process itself is ended
SUPERVISED = "CONFORMANCE_FUZZ_SESSION"  # set where another process goes on after this one


LOST = 75  # the exit code of a session's process that lost its GPU


class Hung(BaseException):
    """No end within the time given. Not an Exception: what is being watched must not catch it and go on."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises Hung inside. A loop of machine code sees no signal; where somebody goes on afterwards, the process ends then."""
    if seconds <= 0 or threading.current_thread() is not threading.main_thread():
        yield
        return

    def cut(*_: Any) -> None:
        raise Hung(f"no end after {seconds:g} s")

    # Again, since one that arises in a callback of Python's own is dropped.
    with alarm(seconds, cut, again=2.0), _ended_after(seconds + min(GRACE, seconds)):
        yield


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    if not os.environ.get(SUPERVISED):
        yield
        return
    with open(os.devnull, "w") as silent:
        faulthandler.dump_traceback_later(seconds, exit=True, file=silent)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
