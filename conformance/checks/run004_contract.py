from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN004", Stage.RUNTIME, "writes to the inputs that the contract names, and returns views as it says")
def contract(seen: Seen) -> Iterator[tuple[Kind, str]]:
    written = seen.facts.get("mutates")
    if written is not None and list(written) != list(seen.contract.runtime.mutates):
        yield Kind.LOST_MUTATION, f"inputs {list(written)} were written to, contract says {list(seen.contract.runtime.mutates)}"
