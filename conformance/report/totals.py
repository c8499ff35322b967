"""Counts with their denominators. Only `pass` counts as pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance.report.style import look, rank

# Cells in which the compiler was not judged at this stage; they stay in the denominator, and are named beside it.
NOT_JUDGED = frozenset({"unavailable", "blocked", "unsupported"})


@dataclass
class Total:
    verdicts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, words: Iterable[str]) -> Total:
        return cls(Counter(words))

    @property
    def cells(self) -> int:
        return sum(self.verdicts.values())

    @property
    def passed(self) -> int:
        return self.verdicts["pass"]

    @property
    def judged(self) -> int:
        return sum(count for word, count in self.verdicts.items() if word not in NOT_JUDGED)

    @property
    def unexpected(self) -> int:
        return sum(count for word, count in self.verdicts.items() if look(word).unexpected)

    def present(self) -> list[tuple[str, int]]:
        return sorted(
            ((word, count) for word, count in self.verdicts.items() if count), key=lambda pair: (rank(pair[0]), pair[0])
        )

    def sentence(self) -> str:
        """`41 of 56 cells pass (44 judged): 2 fail, 1 fallback, 12 unavailable`"""
        rest = ", ".join(f"{count:,} {word}" for word, count in self.present() if word != "pass")
        judged = f" ({self.judged:,} judged)" if self.judged != self.cells else ""
        return f"{self.passed:,} of {self.cells:,} {'cell passes' if self.cells == 1 else 'cells pass'}{judged}" + (
            f": {rest}" if rest else ""
        )
