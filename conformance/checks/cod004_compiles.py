from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("COD004", Stage.CODEGEN, "every kernel becomes machine code for the target")
def compiles(seen: Seen) -> Iterator[tuple[Kind, str]]:
    kernels = seen.facts.get("kernels")
    for name, facts in kernels.items() if isinstance(kernels, dict) else ():
        if "error" in facts:
            yield Kind.BAD_CODE, f"{name} does not compile for {seen.target}: {facts['error']}"
