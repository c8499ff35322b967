from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("DEC006", Stage.DECOMPOSITION, "no op is left that the core decompositions take apart")
def whole(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for op in seen.facts.get("decomposable", []):
        yield Kind.UNDECOMPOSED, f"{op} has a core decomposition and was not decomposed"
