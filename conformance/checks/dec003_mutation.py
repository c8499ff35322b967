from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("DEC003", Stage.DECOMPOSITION, "every mutated input is written back")
def mutation(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if any(getattr(spec, "shares", None) is not None for spec in seen.micrograph.inputs):
        return  # inputs that share storage are written back through one base, outside the graph
    written = seen.facts.get("written_inputs")
    promised = len(seen.contract.runtime.mutates or ())
    if written is not None and written < promised and not seen.facts.get("writes"):
        yield Kind.LOST_MUTATION, f"{written} inputs are written back, the contract names {promised}"
