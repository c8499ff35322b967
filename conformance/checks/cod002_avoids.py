from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("COD002", Stage.CODEGEN, "generated code avoids what the contract says")
def avoids(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for text in seen.contract.codegen.avoids:
        for name, source in seen.observation.texts.items():
            if text in source:
                yield Kind.BAD_CODE, f"{name} contains {text!r}"
