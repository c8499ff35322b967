from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CAP001", Stage.CAPTURE, "as many graphs and breaks as the contract says")
def graphs(seen: Seen) -> Iterator[tuple[Kind, str]]:
    promised = seen.contract.capture
    breaks = seen.facts.get("breaks", promised.breaks)
    if breaks != promised.breaks:
        reasons = "; ".join(seen.facts.get("break_reasons", [])) or "no reason given"
        yield Kind.GRAPH_BREAK, f"{breaks} graph breaks, contract says {promised.breaks}: {reasons}"
    graphs = seen.facts.get("graphs", promised.graphs)
    if graphs != promised.graphs:
        yield Kind.GRAPH_BREAK, f"{graphs} graphs, contract says {promised.graphs}"
