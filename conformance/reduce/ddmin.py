"""Delta debugging: the smallest part of a list for which a question is still answered with yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")
Question = Callable[[list[list[T]]], list[bool]]


def ddmin(items: Sequence[T], holds: Question[T], tries: int = 10_000) -> list[T]:
    """A part of `items`, in their order, for which `holds`, and of which nothing can be left out alone (or `tries`
    were used up).

    `holds` is asked of several candidates at once and answers each, so that they can be tried side by side. It is
    taken to hold for all of `items`."""
    rest, pieces = list(items), 2
    while len(rest) > 1 and tries > 0:
        pieces = min(pieces, len(rest))
        parts = _split(rest, pieces)
        candidates = (
            parts
            if pieces == 2
            else [[x for other in parts[:i] + parts[i + 1 :] for x in other] for i in range(pieces)]
        )
        tries -= len(candidates)
        found = next((candidate for candidate, yes in zip(candidates, holds(candidates), strict=True) if yes), None)
        if found is not None:
            rest, pieces = found, max(pieces - 1, 2) if pieces > 2 else 2
        elif pieces >= len(rest):
            break
        else:
            pieces = min(2 * pieces, len(rest))
    return rest


def first_yes(candidates: Sequence[T], ask: Callable[[Sequence[T]], list[bool]], width: int) -> list[bool]:
    """The answers up to the first yes, `width` candidates asked at a time; those after it are taken for no and not asked."""
    answers: list[bool] = []
    for start in range(0, len(candidates), width):
        answers += ask(candidates[start : start + width])
        if any(answers):
            break
    return answers + [False] * (len(candidates) - len(answers))


def one_by_one(holds: Callable[[list[T]], bool]) -> Question[T]:
    """The question of `ddmin`, from one that can be asked of one candidate at a time."""
    return lambda candidates: first_yes(candidates, lambda some: [holds(one) for one in some], 1)


def _split(items: list[T], pieces: int) -> list[list[T]]:
    """Into so many parts of nearly equal length."""
    bounds = [len(items) * number // pieces for number in range(pieces + 1)]
    return [items[low:high] for low, high in pairwise(bounds)]
