"""The seven stages of a compile, in the order in which they happen."""

from __future__ import annotations

from enum import Enum


class Stage(str, Enum):
    CAPTURE = "capture"
    DECOMPOSITION = "decomposition"
    POSTGRAD = "postgrad"
    FUSION = "fusion"
    CODEGEN = "codegen"
    RUNTIME = "runtime"
    CACHE = "cache"

    def __str__(self) -> str:
        return self.value

    @property
    def order(self) -> int:
        return STAGES.index(self)

    @property
    def marker(self) -> str:
        return f"stage_{self.value}"

    def before(self) -> tuple[Stage, ...]:
        return STAGES[: self.order]


STAGES: tuple[Stage, ...] = tuple(Stage)
