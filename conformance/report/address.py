"""Where a cell stands: its name taken apart, without the demand that the stage or backend be known here."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from conformance import sanitize
from conformance.report.style import stage_rank


class Address(NamedTuple):
    stage: str
    backend: str
    target: str
    micrograph: str

    @property
    def column(self) -> tuple[str, str]:
        return (self.backend, self.target)

    @property
    def family(self) -> str:
        return self.micrograph.partition(".")[0]

    @property
    def compile(self) -> tuple[str, str, str]:
        """The seven cells of one compile share this."""
        return (self.micrograph, self.backend, self.target)

    def order(self) -> tuple[str, str, str, tuple[int, str]]:
        return (self.micrograph, self.backend, self.target, stage_rank(self.stage))


@lru_cache(maxsize=1 << 18)
def address(cell: str) -> Address | None:
    """None where the name is not one of a cell. Records of a newer suite may hold stages that this one does not
    know."""
    parts = cell.split("/", 3)
    if len(parts) != 4 or not all(parts):
        return None
    return Address(*(_part(part) for part in parts))


@lru_cache(maxsize=1 << 14)
def _part(text: str) -> str:
    return sanitize.name(text) or "?"
