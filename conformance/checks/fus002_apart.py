from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("FUS002", Stage.FUSION, "keeps apart what the contract says must not fuse")
def apart(seen: Seen) -> Iterator[tuple[Kind, str]]:
    kernels, apart = seen.facts.get("kernels"), seen.contract.fusion.apart
    if kernels is not None and apart is not None and kernels < apart:
        yield Kind.OVERFUSED, f"{kernels} kernels, contract says at least {apart} must stay apart"
