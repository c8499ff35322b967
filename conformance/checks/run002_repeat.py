from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN002", Stage.RUNTIME, "the same inputs give the same answer every time")
def repeat(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for detail in seen.facts.get("unsteady", []):
        yield Kind.WRONG_RESULT, detail
