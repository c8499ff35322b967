"""How long a case takes, from recorded seconds: of the published records, and of those that the sweep has written before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import msgspec

from conformance import paths

USUAL = 2.0  # seconds of a case where nothing at all is recorded
STARTING = 10.0  # seconds until a worker has imported torch and the library


class _Line(msgspec.Struct):
    cell: str = ""
    verdict: str = ""
    seconds: float = 0.0


class Costs:
    """Seconds by case (`backend/target/micrograph`): the median of the records that have it. A case that none has costs what the
    others of its backend and target do; one of a backend that nothing is known of, what any does."""

    def __init__(self, records: Iterable[Path]) -> None:
        taken: dict[str, list[float]] = defaultdict(list)
        for path in records:
            for case, seconds in _of_record(path).items():
                taken[case].append(seconds)
        self.known = {case: median(seconds) for case, seconds in taken.items()}
        groups: dict[str, list[float]] = defaultdict(list)
        for case, seconds in self.known.items():
            groups[case.rpartition("/")[0]].append(seconds)
        self.usual = {group: sum(seconds) / len(seconds) for group, seconds in groups.items()}
        self.any = sum(self.known.values()) / len(self.known) if self.known else USUAL

    def seconds(self, unit: str) -> float:
        """Never nothing: every case has a process of its own."""
        return max(self.known.get(unit) or self.usual.get(unit.rpartition("/")[0], self.any), 0.01)


def recorded(output: Path | None = None) -> Costs:
    """From the published records and those in the folder of this sweep."""
    return Costs([*sorted(paths.reports().glob("*.jsonl")), *(sorted(output.glob("*.jsonl")) if output else ())])


def _of_record(path: Path) -> dict[str, float]:
    """Seconds of each case of a record, all of its stages together; nothing where it is no record. Read leniently: an estimate needs no
    validation."""
    found: dict[str, float] = defaultdict(float)
    decoder = msgspec.json.Decoder(_Line)
    try:
        with path.open("rb") as file:
            for raw in file:
                try:
                    line = decoder.decode(raw)
                except msgspec.DecodeError:
                    continue
                stage, _, case = line.cell.partition("/")
                if stage and case and line.verdict not in ("unavailable", "unsupported"):
                    found[case] += line.seconds
    except OSError:
        return {}
    return found
