from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("COD003", Stage.CODEGEN, "machine code has the instructions that the contract names")
def instructions(seen: Seen) -> Iterator[tuple[Kind, str]]:
    present = seen.facts.get("instructions")
    if present is None:
        return
    for name in seen.contract.codegen.instructions:
        if not any(name in instruction for instruction in present):
            yield Kind.BAD_CODE, f"no {name} instruction in the machine code"
