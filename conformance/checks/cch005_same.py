from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CCH005", Stage.CACHE, "a cached program computes what eager computes")
def same(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for where, difference in seen.facts.get("differs", {}).items():
        yield Kind.STALE_CACHE, f"{where}: {difference}"
