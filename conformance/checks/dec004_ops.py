from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


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
