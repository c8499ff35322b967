from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN005", Stage.RUNTIME, "a recording is what runs, and a thousand replays hold on to no memory")
def memory(seen: Seen) -> Iterator[tuple[Kind, str]]:
    nothing_to_record = seen.contract.fusion.kernels == 0 and seen.contract.fusion.library == 0
    if seen.facts.get("recordings") == 0 and not nothing_to_record:
        yield Kind.REPLAY_MISMATCH, "nothing was recorded, so that nothing can be replayed"
    if (grew := seen.facts.get("grew_by", 0)) > 0:
        yield Kind.STALE_OUTPUT, f"{grew} bytes more are allocated after a thousand replays"
