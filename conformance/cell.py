"""A cell of the matrix: `stage/backend/target/micrograph`; globs select cells.

The last part may hold slashes:
`codegen/inductor/cpu/upstream:test/inductor/test_indexing.py::ExprPrinterTests::test_ceil`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from conformance.errors import UsageError, unknown
from conformance.stage import STAGES, Stage

WILDCARD = re.compile(r"[*?[]")  # what makes a name a pattern


@dataclass(frozen=True, order=True)
class Cell:
    stage: Stage
    backend: str
    target: str
    micrograph: str

    def __str__(self) -> str:
        return f"{self.stage.value}/{self.backend}/{self.target}/{self.micrograph}"

    @classmethod
    def parse(cls, text: str) -> Cell:
        parts = text.split("/", 3)
        if len(parts) != 4 or not all(parts):
            wanted = "a cell is stage/backend/target/micrograph, e.g. fusion/inductor/cpu/norm.rmsnorm"
            raise UsageError(f"not a cell: {text!r}; {wanted}")
        if parts[0] not in {stage.value for stage in STAGES}:
            raise unknown("stage", parts[0], [stage.value for stage in STAGES])
        return cls(Stage(parts[0]), *parts[1:])

    @property
    def family(self) -> str:
        return self.micrograph.split(".")[0]


def select(names: Iterable[str], globs: str | Iterable[str], what: str) -> list[str]:
    """The names that one of the globs selects, in their order; a glob that selects none is the user's mistake."""
    names, globs = list(names), [globs] if isinstance(globs, str) else list(globs)
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in names):
            raise unknown(what, glob, names)
    return [name for name in names if any(fnmatchcase(name, glob) for glob in globs)]
