"""Descent: from one form to a smaller one that still has the property, until there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def descend(start: T, smaller: Callable[[T], Iterable[T]], holds: Callable[[T], bool], late: Callable[[], bool]) -> T:
    """Take the first of the smaller forms for which `holds`, and go on from there; end where none is left or it is
    late. Nothing is asked about `start`."""
    best: T | None = start
    while best is not None:
        start = best
        best = next((form for form in smaller(start) if not late() and holds(form)), None)
    return start
