from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("DEC002", Stage.DECOMPOSITION, "the graph is functional but for final copies into inputs")
def functional(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if seen.contract.decomposition.functional:
        for op in seen.facts.get("writes", []):
            yield Kind.UNDECOMPOSED, f"{op} writes into its argument: the graph is not functional"
