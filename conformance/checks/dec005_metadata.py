from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("DEC005", Stage.DECOMPOSITION, "every op says the shape and dtype of what it gives")
def metadata(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if count := seen.facts.get("without_metadata"):
        yield Kind.METADATA_LOSS, f"{count} ops have no shape and dtype"
