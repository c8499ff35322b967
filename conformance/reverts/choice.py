"""Which micrographs to run for a bug: those that reach the changed lines of the installed source, by a survey (`conformance mutants survey`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from conformance.mutants.reach import Block
from conformance.mutants.survey import Surveyed

MOST = 60  # micrographs for one bug


def choose(
    changed: Mapping[str, Sequence[Sequence[int]]],
    blocks: Sequence[Block],
    surveyed: Sequence[Surveyed],
    most: int = MOST,
) -> list[str]:
    """Names in the order in which to run them: those that reach a changed block, then those that reach a changed function, then those that
    reach a changed file, each cheapest first and spread over the families of the library. Of files that no survey watches, any."""
    lines, functions, files = places(changed, blocks)
    if not files:
        return spread(surveyed)[:most]
    chosen: dict[str, None] = {}
    for wanted in (lines, functions, files):
        if len(chosen) < most:
            chosen |= dict.fromkeys(spread([one for one in surveyed if not wanted.isdisjoint(one.reached)]))
    return list(chosen)[:most]


def places(
    changed: Mapping[str, Sequence[Sequence[int]]], blocks: Sequence[Block]
) -> tuple[set[int], set[int], set[int]]:
    """Numbers of blocks: those that hold a changed line; those of the functions that these are of; those of the files."""
    by_file: dict[str, list[int]] = defaultdict(list)
    for number, block in enumerate(blocks):
        by_file[block.file].append(number)
    lines: set[int] = set()
    for file, ranges in changed.items():
        numbers = by_file.get(file.removeprefix("torch/"), [])
        for first, last in ranges:
            inside = {number for number in numbers if first <= blocks[number].line <= last}
            before = [number for number in numbers if blocks[number].line <= first]
            lines |= inside | set(before[-1:] if before else ())
    names = {(blocks[number].file, blocks[number].function) for number in lines}
    files = {number for file in changed for number in by_file.get(file.removeprefix("torch/"), [])}
    return lines, {number for number in files if (blocks[number].file, blocks[number].function) in names}, files


def spread(surveyed: Iterable[Surveyed]) -> list[str]:
    """Families in turn, each with its cheapest first; what is wrong without the bug comes last of its family: it may not get so far."""
    families: dict[str, list[Surveyed]] = defaultdict(list)
    for one in sorted(surveyed, key=lambda one: (not one.right, one.seconds, one.micrograph)):
        families[one.micrograph.rpartition(".")[0]].append(one)
    turns = [(turn, one.seconds, one.micrograph) for family in families.values() for turn, one in enumerate(family)]
    return [name for _, _, name in sorted(turns)]
