"""Code generation: what the generated code must and must not contain."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.checks.registry import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("COD002", Stage.CODEGEN, "generated code avoids what the contract says")
def avoids(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for text in seen.contract.codegen.avoids:
        for name, source in seen.observation.texts.items():
            if text in source:
                yield Kind.BAD_CODE, f"{name} contains {text!r}"


@check("COD003", Stage.CODEGEN, "machine code has the instructions that the contract names")
def instructions(seen: Seen) -> Iterator[tuple[Kind, str]]:
    present = seen.facts.get("instructions")
    if present is None:
        return
    for name in seen.contract.codegen.instructions:
        if not any(name in instruction for instruction in present):
            yield Kind.BAD_CODE, f"no {name} instruction in the machine code"


@check("COD004", Stage.CODEGEN, "every kernel becomes machine code for the target")
def compiles(seen: Seen) -> Iterator[tuple[Kind, str]]:
    kernels = seen.facts.get("kernels")
    for name, facts in kernels.items() if isinstance(kernels, dict) else ():
        if "error" in facts:
            yield Kind.BAD_CODE, f"{name} does not compile for {seen.target}: {facts['error']}"
