from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("COD001", Stage.CODEGEN, "a program was generated for every graph")
def program(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if seen.facts.get("programs") == 0:
        yield Kind.BAD_CODE, "no program was generated"
