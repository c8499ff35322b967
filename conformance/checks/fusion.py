"""Fusion: how many kernels and library calls, and what they cost by the compiler's own accounting."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.checks.registry import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("FUS001", Stage.FUSION, "fuses into at most as many kernels as the contract allows")
def at_most(seen: Seen) -> Iterator[tuple[Kind, str]]:
    kernels, allowed = seen.facts.get("kernels"), seen.contract.fusion.kernels
    if kernels is not None and allowed is not None and kernels > allowed:
        yield Kind.UNFUSED, f"{kernels} kernels, contract allows {allowed}"


@check("FUS002", Stage.FUSION, "keeps apart what the contract says must not fuse")
def apart(seen: Seen) -> Iterator[tuple[Kind, str]]:
    kernels, apart = seen.facts.get("kernels"), seen.contract.fusion.apart
    if kernels is not None and apart is not None and kernels < apart:
        yield Kind.OVERFUSED, f"{kernels} kernels, contract says at least {apart} must stay apart"


@check("FUS003", Stage.FUSION, "calls library kernels as often as the contract says")
def library(seen: Seen) -> Iterator[tuple[Kind, str]]:
    calls, promised = seen.facts.get("library"), seen.contract.fusion.library
    if calls is not None and promised is not None and len(calls) != promised:
        kind = Kind.UNFUSED if len(calls) > promised else Kind.OVERFUSED
        yield kind, f"{len(calls)} library calls ({', '.join(calls) or 'none'}), contract says {promised}"


@check("FUS004", Stage.FUSION, "needs no more temporaries and moves no more bytes than the contract allows")
def cost(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for name in ("temporaries", "bytes_moved"):
        shown, allowed = seen.facts.get(name), getattr(seen.contract.fusion, name)
        if shown is not None and allowed is not None and shown > allowed:
            yield Kind.UNFUSED, f"{name.replace('_', ' ')}: {shown}, contract allows {allowed}"
