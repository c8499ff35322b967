from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CAP003", Stage.CAPTURE, "captures again when the dtype, the strides or a flag of an input change, or gradients are turned on")
def guarded(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for what, recompiled in seen.facts.get("guarded", {}).items():
        if not recompiled:
            yield Kind.MISSED_RECOMPILE, f"no new capture when {what}"
