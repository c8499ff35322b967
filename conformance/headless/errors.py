"""A private API of torch or Triton that is not where it was."""

from __future__ import annotations

from conformance.backends.base import CannotRun


class Moved(Exception):
    """What headless mode leans on is not there in this version: cells become `unavailable`, and say what moved."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} moved")
        self.what = what


class NotInterpretable(CannotRun):
    """The generated program does something that cannot be run on the CPU, and why."""
