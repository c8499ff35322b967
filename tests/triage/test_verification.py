"""A repro is handed over if it was seen to fail alone and to be right when cured. The scripts here need no compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.stage import Stage
from conformance.triage.adapter import Adapter
from conformance.triage.ending import Ending, from_text
from conformance.triage.ladder import Climb
from conformance.triage.runs import Runs
from conformance.triage.script_search import Search
from conformance.triage.subject import script


class OneCure(Adapter):
    def cures(self, stage: Stage, culprit: object) -> list[tuple[str, ...]]:
        return [('os.environ["WHOLE"] = "1"',)]


class TwoCures(Adapter):
    def cures(self, stage: Stage, culprit: object) -> list[tuple[str, ...]]:
        return [('os.environ["PART"] = "1"',), ('os.environ["WHOLE"] = "1"',)]


def written(tmp_path: Path, text: str, adapter: Adapter | None = None) -> tuple[Search, Path]:
    file = tmp_path / "given.py"
    file.write_text(text)
    adapter, out = adapter or OneCure(), tmp_path / "out"
    runs = Runs(adapter.hold, limit=20)
    search = Search(script(file), adapter, runs, {"torch": "2.15.0"})
    search.answer.stage, search.answer.given = Stage.CODEGEN, Ending(1)
    search.answer.climb = Climb(Ending(1), ())
    search._write(script(file), out)
    runs.close()
    return search, out


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))


def test_what_fails_alone_and_is_right_when_cured_is_handed_over(tmp_path: Path) -> None:
    search, out = written(tmp_path, 'import os\nimport sys\n\nsys.exit("WHOLE" not in os.environ)\n')
    assert search.answer.verified == "alone it exits 1; cured it exits 0"
    assert search.answer.repro == out / "given_codegen.py"
    assert search.answer.issue is not None and "**Stage**: codegen" in search.answer.issue.read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pass", "the script alone ends with exit 0; with the cure: exit 0"),
        ("raise ValueError('whatever')", "ends with ValueError: whatever; with the cure: ValueError: whatever"),
        ("import sys\nsys.exit(3)", "the script alone ends with exit 3"),
    ],
)
def test_anything_else_is_not(tmp_path: Path, text: str, reason: str) -> None:
    search, out = written(tmp_path, text)
    assert search.answer.repro is None and not list(out.iterdir())
    assert reason in search.answer.unwritten


def test_another_cure_is_tried_where_the_script_fails_alone(tmp_path: Path) -> None:
    search, _ = written(tmp_path, 'import os\nimport sys\n\nsys.exit("WHOLE" not in os.environ)\n', TwoCures())
    assert search.answer.repro is not None and search.runs.counted == 3


def test_no_other_cure_is_tried_where_it_does_not(tmp_path: Path) -> None:
    search, _ = written(tmp_path, "pass", TwoCures())
    assert search.answer.repro is None and search.runs.counted == 2


def test_what_torch_logs_is_not_what_the_script_said() -> None:
    logged = "W1116 06:44:45.397000 29810 torch/utils/cpp_extension.py:183] [0/0] No CUDA runtime is found"
    assert Ending(1, output=f"eager 1, compiled 2\n{logged}\n").told() == "exit 1: eager 1, compiled 2"


def test_a_comparison_that_fails_is_no_crash_of_the_compiler() -> None:
    text = 'Traceback (most recent call last):\n  File "/site-packages/torch/{}.py", line 1, in f\n{}'
    said = "AssertionError: Tensor-likes are not close!"
    assert from_text(1, text.format("testing/_comparison", said)) == (said, False)
    assert from_text(1, text.format("_dynamo/utils", said)) == (said, True)
