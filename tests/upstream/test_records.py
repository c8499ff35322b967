"""The published records of upstream tests: readable, as the map says, and counted in docs/upstream.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance import paths
from conformance.record import read
from conformance.upstream import stage_map, summary
from conformance.upstream.outcome import COLLECTION
from conformance.upstream.results import PREFIX

RECORDS = sorted((paths.reports() / "upstream").glob("*.jsonl"))
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "upstream.md"


def test_there_are_records() -> None:
    assert RECORDS


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_the_map_still_gives_every_recorded_test_its_stage(record: Path) -> None:
    run = read(record)
    ((suite, version),) = run.header["env"]["checkout"].items()
    mapped = stage_map.load(suite, version)
    assert not run.problems
    for cell, line in summary.upstream_cells(run).items():
        stage, backend, _, name = cell.split("/", 3)
        test = name.removeprefix(PREFIX)
        entry = mapped.find_file(test.partition("::")[0]) if test.endswith(COLLECTION) else mapped.find(test)
        assert entry is not None and backend == mapped.suite.backend, cell
        assert stage == entry.stage.value or "after" in line["observation"], cell


def test_the_document_gives_the_counts_of_the_records() -> None:
    rows = re.findall(
        r"^\| \[[^]]+\]\(\.\./reports/upstream/([\w.-]+)\) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|",
        DOCUMENT.read_text("utf-8"),
        re.MULTILINE,
    )
    told = {name: tuple(int(number.replace(",", "")) for number in numbers) for name, *numbers in rows}
    assert told == {record.name: _counts(record) for record in RECORDS}


def _counts(record: Path) -> tuple[int, int, int, int]:
    """Tests, run, passed, unexpected."""
    found = summary.summarize(summary.upstream_cells(read(record)))
    return found.tests, found.ran, sum(counter["pass"] for counter in found.verdicts.values()), found.unexpected
