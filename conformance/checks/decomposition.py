"""Decomposition: what is left whole, what is written back, what lost its metadata."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.checks.registry import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("DEC001", Stage.DECOMPOSITION, "no composite op is left")
def composite(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for op in seen.facts.get("composite", []):
        yield Kind.UNDECOMPOSED, f"{op} is a composite op and was not decomposed"


@check("DEC002", Stage.DECOMPOSITION, "the graph is functional but for final copies into inputs")
def functional(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for op in seen.facts.get("writes", []):
        yield Kind.UNDECOMPOSED, f"{op} writes into its argument: the graph is not functional"


@check("DEC003", Stage.DECOMPOSITION, "every mutated input is written back")
def mutation(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if any(getattr(spec, "shares", None) is not None for spec in seen.micrograph.inputs):
        return  # inputs that share storage are written back through one base, outside the graph
    written = seen.facts.get("written_inputs")
    promised = len(seen.contract.runtime.mutates or ())
    if written is not None and written < promised and not seen.facts.get("writes"):
        yield Kind.LOST_MUTATION, f"{written} inputs are written back, the contract names {promised}"


@check("DEC004", Stage.DECOMPOSITION, "ops are kept and gone as the contract says")
def ops(seen: Seen) -> Iterator[tuple[Kind, str]]:
    ops = seen.facts.get("ops")
    if ops is None:
        return
    present = {*ops} | {op.rsplit(".", 1)[0] for op in ops}
    for op in seen.contract.decomposition.absent:
        if op in present:
            yield Kind.UNDECOMPOSED, f"{op} is still there"
    for op in seen.contract.decomposition.keeps:
        if op not in present:
            yield Kind.UNDECOMPOSED, f"{op} is gone"


@check("DEC005", Stage.DECOMPOSITION, "every op says the shape and dtype of what it gives")
def metadata(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if count := seen.facts.get("without_metadata"):
        yield Kind.METADATA_LOSS, f"{count} ops have no shape and dtype"


@check("DEC006", Stage.DECOMPOSITION, "no op is left that the core decompositions take apart")
def whole(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for op in seen.facts.get("decomposable", []):
        yield Kind.UNDECOMPOSED, f"{op} has a core decomposition and was not decomposed"
