from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN006", Stage.RUNTIME, "an output that the next replay writes over says so when it is read")
def lifetime(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for output in seen.facts.get("silently_overwritten", ()):
        yield Kind.STALE_OUTPUT, f"{output} was overwritten by the next call, and can still be read: no error says so"
