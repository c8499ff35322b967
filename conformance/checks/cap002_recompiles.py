from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CAP002", Stage.CAPTURE, "recompiles exactly as often as the contract says when a named dim changes")
def recompiles(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for dim, promised in seen.contract.capture.recompiles.items():
        count = seen.facts.get("recompiles", {}).get(dim, promised)
        if count != promised:
            kind = Kind.EXTRA_RECOMPILE if count > promised else Kind.MISSED_RECOMPILE
            yield kind, f"{count} recompiles when {dim} takes a second and a third size, contract says {promised}"
