from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CCH004", Stage.CACHE, "saved artifacts hit in a process that compiled nothing")
def fresh(seen: Seen) -> Iterator[tuple[Kind, str]]:
    fresh = seen.facts.get("fresh_process")
    if fresh is None or not seen.contract.cache.cacheable or "fresh_process" in seen.facts.get("differs", {}):
        return
    if not any("hit" in name for name in fresh) or any("miss" in name for name in fresh):
        shown = ", ".join(f"{name} {count}" for name, count in fresh.items()) or "no cache was asked"
        yield Kind.CACHE_MISS, f"artifacts loaded in a fresh process did not hit: {shown}"
