from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN001", Stage.RUNTIME, "the outputs of a call survive later calls")
def survive(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for detail in seen.facts.get("overwritten", []):
        yield Kind.STALE_OUTPUT, detail
