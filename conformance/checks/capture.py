"""Capture: graphs, breaks, recompiles and guards."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.checks.registry import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CAP001", Stage.CAPTURE, "as many graphs and breaks as the contract says")
def graphs(seen: Seen) -> Iterator[tuple[Kind, str]]:
    promised = seen.contract.capture
    breaks = seen.facts.get("breaks", promised.breaks)
    if promised.breaks is not None and breaks != promised.breaks:
        reasons = "; ".join(seen.facts.get("break_reasons", [])) or "no reason given"
        yield Kind.GRAPH_BREAK, f"{breaks} graph breaks, contract says {promised.breaks}: {reasons}"
    graphs = seen.facts.get("graphs", promised.graphs)
    if promised.graphs is not None and graphs != promised.graphs:
        yield Kind.GRAPH_BREAK, f"{graphs} graphs, contract says {promised.graphs}"


@check("CAP002", Stage.CAPTURE, "recompiles exactly as often as the contract says when a named dim changes")
def recompiles(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for dim, promised in seen.contract.capture.recompiles.items():
        count = seen.facts.get("recompiles", {}).get(dim, promised)
        if count != promised:
            kind = Kind.EXTRA_RECOMPILE if count > promised else Kind.MISSED_RECOMPILE
            yield kind, f"{count} recompiles when {dim} takes a second and a third size, contract says {promised}"


@check(
    "CAP003",
    Stage.CAPTURE,
    "captures again when the dtype, the strides or a flag of an input change, or gradients are turned on",
)
def guarded(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for what, recompiled in seen.facts.get("guarded", {}).items():
        if not recompiled:
            yield Kind.MISSED_RECOMPILE, f"no new capture when {what}"


@check("CAP004", Stage.CAPTURE, "what was captured for one input is not used for another")
def stale(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for difference in seen.facts.get("stale", []):
        yield (
            Kind.MISSED_RECOMPILE if "as given" not in difference else Kind.WRONG_RESULT,
            f"captured graph, {difference}",
        )


@check("CAP005", Stage.CAPTURE, "what was captured serves every call that it must serve")
def again(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for when, recompiles in seen.facts.get("recompiled_at", {}).items():
        yield Kind.EXTRA_RECOMPILE, f"{recompiles} new captures at {when}"
