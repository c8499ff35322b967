from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("DEC001", Stage.DECOMPOSITION, "no composite op is left")
def composite(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for op in seen.facts.get("composite", []):
        yield Kind.UNDECOMPOSED, f"{op} is a composite op and was not decomposed"
