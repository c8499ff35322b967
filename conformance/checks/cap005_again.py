from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CAP005", Stage.CAPTURE, "what was captured serves every call that it must serve")
def again(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for when, recompiles in seen.facts.get("recompiled_at", {}).items():
        yield Kind.EXTRA_RECOMPILE, f"{recompiles} new captures at {when}"
