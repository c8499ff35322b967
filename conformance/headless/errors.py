"""What a described GPU cannot do."""

from __future__ import annotations

from conformance.backends.base import CannotRun


class NotInterpretable(CannotRun):
    """The generated program does something that cannot be run on the CPU, and why."""
