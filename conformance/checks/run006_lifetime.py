from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN006", Stage.RUNTIME, "what a call gave lasts as long as the step, or says that it did not")
def lifetime(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for output in seen.facts.get("silently_overwritten", ()):
        yield Kind.STALE_OUTPUT, f"{output} was overwritten by the next call of the same step, and no error says so"
