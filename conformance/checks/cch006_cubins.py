from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CCH006", Stage.CACHE, "on a GPU the compiled kernels are in the cache too")
def cubins(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if seen.facts.get("cubins") == 0:
        yield Kind.CACHE_MISS, "the cache holds no cubin, though kernels were compiled"
