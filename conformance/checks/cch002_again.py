from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CCH002", Stage.CACHE, "a second compile of the same graph hits")
def again(seen: Seen) -> Iterator[tuple[Kind, str]]:
    again = seen.facts.get("again")
    if again is None or not seen.contract.cache.cacheable:
        return
    if not any("hit" in name for name in again) or any("miss" in name for name in again):
        shown = ", ".join(f"{name} {count}" for name, count in again.items()) or "no cache was asked"
        yield Kind.CACHE_MISS, f"a second compile of the same graph did not hit: {shown}"
