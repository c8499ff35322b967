"""docs/record.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from conformance import record
from conformance.report import facts
from conformance.report.load import load
from conformance.report.style import LETTERS, LOOKS, ORDER
from conformance.stage import STAGES
from conformance.verdict import Verdict

TEXT = (Path(__file__).parents[2] / "docs" / "record.md").read_text(encoding="utf-8")


def words(line_with: str) -> list[str]:
    line = next(line for line in TEXT.splitlines() if line_with in line)
    return re.findall(r"`([a-z_]+)`", line.split("|")[1] if line.startswith("|") else line)


def test_the_examples_are_a_record(tmp_path: Path) -> None:
    examples = re.findall(r"```json\n(.*?)\n```", TEXT, re.S)
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(examples) + "\n", encoding="utf-8")
    (run,) = load([path])
    assert list(run.cells) == ["fusion/inductor/sm_90/norm.add_rmsnorm"] and not run.problems
    assert run.header["schema"] == record.SCHEMA and run.version("inductor") == "2.14.1"


def test_verdicts_are_all_named() -> None:
    line = next(line for line in TEXT.splitlines() if line.startswith("| `verdict`"))
    assert re.search(r"`(pass [a-z ]+)`", line)[1].split() == [verdict.value for verdict in Verdict]  # type: ignore[index]
    assert set(ORDER) == set(LOOKS) == {verdict.value for verdict in Verdict} == set(record.VERDICTS)
    assert list(LETTERS) == [stage.value for stage in STAGES]


def test_the_tables_of_facts_are_those_of_the_code() -> None:
    assert words("| ignored |") == list(facts.VOLATILE_ENDS)
    assert words("| bookkeeping |") == list(facts.BOOKKEEPING_ENDS)
    section = TEXT.split("What more or fewer")[1].split("A difference has")[0]
    assert set(re.findall(r"`([a-z_]+)`", section)) <= set(facts.DIRECTIONS)
