from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("FUS003", Stage.FUSION, "calls library kernels as often as the contract says")
def library(seen: Seen) -> Iterator[tuple[Kind, str]]:
    calls, promised = seen.facts.get("library"), seen.contract.fusion.library
    if calls is not None and promised is not None and len(calls) != promised:
        kind = Kind.UNFUSED if len(calls) > promised else Kind.OVERFUSED
        yield kind, f"{len(calls)} library calls ({', '.join(calls) or 'none'}), contract says {promised}"
