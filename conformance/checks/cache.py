"""Cache: hits where the program is the same, misses where it is not, and the right answer from both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from conformance.checks.registry import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CCH001", Stage.CACHE, "the first compile asks an empty cache and misses")
def first(seen: Seen) -> Iterator[tuple[Kind, str]]:
    first = seen.facts.get("first")
    if first is None or seen.contract.capture.graphs is None:  # a scenario may compile the same graph twice, or none
        return
    if not any("miss" in name for name in first):
        yield Kind.CACHE_MISS, "the caches were not asked at the first compile"
    for name in (name for name in first if "hit" in name):
        yield Kind.STALE_CACHE, f"{name} {first[name]} in an empty cache"


@check("CCH002", Stage.CACHE, "a second compile of the same graph hits")
def again(seen: Seen) -> Iterator[tuple[Kind, str]]:
    again = seen.facts.get("again")
    if again is None or not seen.contract.cache.cacheable:
        return
    if missed := _missed(again):
        yield Kind.CACHE_MISS, f"a second compile of the same graph did not hit: {missed}"


def _missed(counters: Mapping[str, int]) -> str:
    """The counters of a compile that was not served from the cache; empty where it was."""
    if any("hit" in name for name in counters) and not any("miss" in name for name in counters):
        return ""
    return ", ".join(f"{name} {count}" for name, count in counters.items()) or "no cache was asked"


@check("CCH003", Stage.CACHE, "a changed setting or input is not served from the cache")
def changed(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for what in ("changed_config", "changed_input", "changed_dtype", "changed_strides", "changed_constant"):
        for name, count in seen.facts.get(what, {}).items():
            if "hit" in name:
                yield Kind.STALE_CACHE, f"{what} was served from the cache: {name} {count}"


@check("CCH004", Stage.CACHE, "saved artifacts hit in a process that compiled nothing")
def fresh(seen: Seen) -> Iterator[tuple[Kind, str]]:
    fresh = seen.facts.get("fresh_process")
    if fresh is None or not seen.contract.cache.cacheable or "fresh_process" in seen.facts.get("differs", {}):
        return
    if missed := _missed(fresh):
        yield Kind.CACHE_MISS, f"artifacts loaded in a fresh process did not hit: {missed}"


@check("CCH005", Stage.CACHE, "a cached program computes what eager computes")
def same(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for where, difference in seen.facts.get("differs", {}).items():
        if not NOT_RUN.search(difference):
            yield Kind.STALE_CACHE, f"{where}: {difference}"


NOT_RUN = re.compile(r"\b(CannotRun|NotInterpretable): ")  # a program that cannot be run here gives no other answer


@check("CCH006", Stage.CACHE, "on a GPU the compiled kernels are in the cache too")
def cubins(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if seen.facts.get("cubins") == 0:
        yield Kind.CACHE_MISS, "the cache holds no cubin, though kernels were compiled"
