from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("PGR003", Stage.POSTGRAD, "no pass drops a write into an input")
def mutation(seen: Seen) -> Iterator[tuple[Kind, str]]:
    before, after = seen.facts.get("written_inputs_before"), seen.facts.get("written_inputs")
    if before is not None and after is not None and after < before:
        yield Kind.LOST_MUTATION, f"{before} inputs were written back before the passes, {after} after"
