"""What is wrong in a sweep, told once a cause: the same refusal over many operators and dtypes is one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from conformance.errors import few
from conformance.ops.words import operator_and_dtype
from conformance.record import is_unexpected
from conformance.verdict import Kind

DTYPE = re.compile(
    r"\b(?:torch\.)?(?:b?float\d+(?:_\w+)?|u?int\d+|complex\d+|bool|half|double|long|short|byte|char)\b", re.I
)
NUMBER = re.compile(r"0x[0-9a-f]+|[-+]?\d[\d.,]*(?:e[-+]?\d+)?|\b(?:nan|inf)\b|\[[^\]]*\]")
REFUSALS = (Kind.CRASH.value, Kind.TIMEOUT.value)


@dataclass
class Cause:
    """Findings that say the same, apart from dtypes and numbers. What an exception says is one cause for all operators that raise it; a
    wrong value is one for its operator alone."""

    stage: str
    kind: str
    example: str
    operators: dict[str, None] = field(default_factory=dict)
    dtypes: dict[str, None] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.kind} ({self.stage}): {few(self.operators, 4)}; {few(self.dtypes, 4)}\n    {self.example}"


def causes(lines: Iterable[dict[str, Any]]) -> list[Cause]:
    """The causes of what is unexpected in a record, those of the most operators first."""
    found: dict[tuple[str, ...], Cause] = {}
    for line in lines:
        if not is_unexpected(line):
            continue
        stage, _, _, name = line["cell"].split("/", 3)
        operator, dtype = operator_and_dtype(name) or (name, "")
        for finding in line["findings"]:
            kind, said = finding["kind"], without_values(finding["detail"])
            whose = "" if kind in REFUSALS else operator
            cause = found.setdefault((stage, kind, whose, said), Cause(stage, kind, finding["detail"]))
            cause.operators[operator] = cause.dtypes[dtype] = None
            cause.cells.append(line["cell"])
    return sorted(found.values(), key=lambda cause: (-len(cause.operators), -len(cause.cells)))


def without_values(detail: str) -> str:
    """What a finding says of no call in particular: `plain, 2 of 3 calls: torch.mv(float32[3], …): dtype: eager …` from `dtype:` on."""
    said = detail.rpartition("; at fault: ")[0] or detail
    said = said.partition("): ")[2] or said
    return NUMBER.sub("#", DTYPE.sub("dtype", said))[:160]
