from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("FUS004", Stage.FUSION, "where the contract asks for fusion, the scheduler fuses something")
def nothing(seen: Seen) -> Iterator[tuple[Kind, str]]:
    # On the CPU one C++ kernel may hold loops that were never fused, so that counting kernels is not enough.
    groups, largest = seen.facts.get("groups"), seen.facts.get("largest_group")
    promised = seen.contract.fusion.kernels
    if groups is None or largest is None or promised is None or groups <= promised:
        return
    if largest == 1:
        yield Kind.UNFUSED, f"{groups} groups of one IR node each: nothing was fused, contract allows {promised} kernels"
