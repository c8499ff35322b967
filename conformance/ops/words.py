"""How an operator fares in a dtype, in one word: read from the lines of a record, without torch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.verdict import Kind

# How a call was compiled, the worst last.
COMPILED, DECOMPOSED, LIBRARY, FALLBACK = "compiled", "decomposed", "library call", "fallback"
WRONG, REFUSES, CRASH = "wrong", "refuses", "crash"
WORDS = (COMPILED, DECOMPOSED, LIBRARY, FALLBACK, WRONG, REFUSES, CRASH)
BAD = (WRONG, REFUSES, CRASH)
NOTHING, BLOCKED = "no sample", "blocked"

SIGNS = {
    COMPILED: "✓", DECOMPOSED: "✓", LIBRARY: "L", FALLBACK: "↩", WRONG: "✗", REFUSES: "R", CRASH: "E",
    BLOCKED: "▫", NOTHING: "·",
}  # fmt: skip
MEANINGS = {
    COMPILED: "kernels were generated, and every call gives what eager gives",
    DECOMPOSED: "decomposed, and every call gives what eager gives; nothing was compiled further",
    LIBRARY: "left to a kernel of a library, and right",
    FALLBACK: "left to ATen, or to eager by a graph break, and right",
    WRONG: "a call gives something else than eager",
    REFUSES: "eager takes a call, and the compiler raises",
    CRASH: "the process dies, or does not end",
    BLOCKED: "every call is wrong at an earlier stage",
    NOTHING: "eager takes no sample",
}
# The verdict whose colours a word has on a page.
LOOKS = {
    COMPILED: "pass", DECOMPOSED: "pass", LIBRARY: "xfail", FALLBACK: "fallback", WRONG: "fail", REFUSES: "error",
    CRASH: "timeout", BLOCKED: "blocked", NOTHING: "unavailable",
}  # fmt: skip
DTYPES = (
    "float32 bfloat16 float16 float64 int64 int32 int16 int8 uint8 bool complex64 complex128 uint16 uint32 uint64"
).split()
PREFIX = "ops."
OP_ENDED = "OPS004"  # as `conformance.checks.measured` declares it, which imports torch


def script_stem(operator: str, kind: str) -> str:
    """What the script of a finding is called, so that an expectation finds it: `put_wrong_metadata`."""
    return re.sub(r"\W+", "_", f"{operator} {kind}").strip("_")


@dataclass
class Entry:
    """How an operator fares in a dtype: a word of `SIGNS`, and for each stage what is wrong. `unbuilt`: operators of the graph that the
    compiler's registry has a converter for, and that were not converted."""

    word: str
    forms: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    expected: bool = True
    unbuilt: list[str] = field(default_factory=list)


def operator_and_dtype(micrograph: str) -> tuple[str, str] | None:
    """`ops.add:float32` → add, float32; None for a micrograph that is no operator."""
    if not micrograph.startswith(PREFIX):
        return None
    operator, _, dtype = micrograph.removeprefix(PREFIX).rpartition(":")
    return operator, dtype


def dtype_order(dtype: str) -> int:
    return DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES)


def entry_of(stages: Mapping[str, Mapping[str, Any]]) -> Entry:
    """The word for an operator in a dtype, from its cells at each stage."""
    entry = _entry_of(stages)
    entry.unbuilt = sorted({op for line in stages.values() for op in line["observation"].get("unbuilt", ())})
    return entry


def _entry_of(stages: Mapping[str, Mapping[str, Any]]) -> Entry:
    wrong = [(stage, line) for stage, line in stages.items() if line["findings"]]
    if wrong:
        findings = [f"{stage}: {finding['detail']}" for stage, line in wrong for finding in line["findings"]]
        forms = sorted({form for _, line in wrong for form in line["observation"].get("wrong", {})})
        expected = all(line["verdict"] == "xfail" for _, line in wrong)
        return Entry(_worst(wrong), forms, findings, expected)
    last = list(stages.values())[-1]
    how = last["observation"].get("how", {})
    for word in (FALLBACK, LIBRARY, COMPILED, DECOMPOSED, REFUSES):
        if how.get(word):
            return Entry(word, findings=last["observation"].get("notes", []) if word == REFUSES else [])
    return Entry(BLOCKED if last["verdict"] == "blocked" else NOTHING, findings=[last["reason"]])


def _worst(wrong: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    found = [finding for _, line in wrong for finding in line["findings"]]
    if any(finding.get("check") == OP_ENDED for finding in found):
        return CRASH
    return REFUSES if all(finding.get("kind") == Kind.CRASH.value for finding in found) else WRONG
