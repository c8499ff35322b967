from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN003", Stage.RUNTIME, "a dim marked dynamic serves every size without a recompile")
def sizes(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for size, recompiles in seen.facts.get("recompiled_at", {}).items():
        yield Kind.EXTRA_RECOMPILE, f"{recompiles} recompiles at {size}, though the dim was marked dynamic"
