from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CAP004", Stage.CAPTURE, "what was captured for one input is not used for another")
def stale(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for difference in seen.facts.get("stale", []):
        yield Kind.MISSED_RECOMPILE if "as given" not in difference else Kind.WRONG_RESULT, f"captured graph, {difference}"
