from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("FUS001", Stage.FUSION, "fuses into at most as many kernels as the contract allows")
def at_most(seen: Seen) -> Iterator[tuple[Kind, str]]:
    kernels, allowed = seen.facts.get("kernels"), seen.contract.fusion.kernels
    if kernels is not None and allowed is not None and kernels > allowed:
        yield Kind.UNFUSED, f"{kernels} kernels, contract allows {allowed}"
