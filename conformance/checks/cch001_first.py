from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CCH001", Stage.CACHE, "the first compile asks an empty cache and misses")
def first(seen: Seen) -> Iterator[tuple[Kind, str]]:
    first = seen.facts.get("first")
    if first is None:
        return
    if not any("miss" in name for name in first):
        yield Kind.CACHE_MISS, "the caches were not asked at the first compile"
    for name in (name for name in first if "hit" in name):
        yield Kind.STALE_CACHE, f"{name} {first[name]} in an empty cache"
