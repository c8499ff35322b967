"""The command, the pinned test file, and the mistakes of a caller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import cli, paths
from conformance.errors import UsageError
from conformance.passes import subject

EXAMPLES = paths.PACKAGE.parent / "examples" / "passes"
PASS = """
import torch

def twice(x, y):
    return torch.relu(x) * y

def fused(x, y):
    return y * torch.clamp_min(x, 0.0)

mine = (twice, fused, lambda: [torch.empty(4, 8), torch.empty(4, 8)])
number = 3
rule = (twice, 5, [])
"""
MICROGRAPHS = """
import torch
from conformance import Contract, Micrograph, Tensor

class One(Micrograph):
    inputs = (Tensor("4 8"), Tensor("4 8"))
    contract = Contract()

    def forward(self, x, y):
        return torch.relu(x) * y

class Swapped(One):
    def forward(self, x, y):
        return y * torch.relu(x)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "passes" / "micrographs").mkdir(parents=True)
    (tmp_path / "passes" / "mine.py").write_text(PASS)
    (tmp_path / "passes" / "micrographs" / "own.py").write_text(MICROGRAPHS)
    return tmp_path


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["pass", *arguments])
    return int(str(left.value.code))


def test_a_callers_mistakes_are_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = f"{project}/passes/mine.py"
    for arguments, said in [
        ([f"{file}:nothing"], "unknown object in"),
        ([f"{file}:number"], "number is a int: expected a pass"),
        ([f"{file}:rule"], "expected (pattern, replacement, example inputs)"),
        ([f"{project}/absent.py:mine"], "no file"),
        ([f"{file}:mine", "fuse_norm"], "not both"),
        ([f"{file}:mine", "--hook", "pregrad"], "unknown hook 'pregrad': did you mean pre_grad"),
        ([f"{file}:mine", "-m", "nothing.*"], "unknown micrograph"),
        ([f"{file}:mine", "-b", "tensorrt"], "did you mean torch_tensorrt?"),
        ([f"{file}:mine", "--against", f"{project}/no.json"], "no.json: write it with `conformance pass … --json >"),
        ([f"{file}:mine", "--torch", "2.15..2.11"], "the older version first"),
        ([f"{file}:mine", "--torch", "2.15", "--pin", "test_counts.py"], "--pin is for one version of torch"),
        ([f"{file}:mine", "-b", "autodeploy", "--build"], "--build is for Inductor's passes"),
        ([file], f"which object of {file}?"),
        ([f"{project}/passes/micrographs/own.py:One"], "One is a module, not a pass"),
    ]:
        assert call(*arguments) == 2
        complaint = capsys.readouterr().err.strip()
        assert said in complaint and "\n" not in complaint


def test_the_patterns_of_a_pass_object_are_found(project: Path) -> None:
    from torch._inductor.pattern_matcher import PatternMatcherPass

    patterns = PatternMatcherPass()

    class Mine:
        hook = "joint_post"

        def __init__(self) -> None:
            self.patterns = [patterns]

        def __call__(self, graph: Any) -> None:
            self.patterns[0].apply(graph)

    made = subject.subject_of(Mine)
    assert made.sets == [patterns] and made.hook.setting == "joint_custom_post_pass"
    assert subject.subject_of(lambda graph: patterns.apply(graph), "mine").sets == [patterns]
    with pytest.raises(UsageError, match="cannot be made without arguments"):
        subject.subject_of(type("Wants", (), {"__init__": lambda self, one: None, "__call__": print}))


@pytest.mark.own_process
def test_a_pass_is_examined_pinned_and_the_pinned_file_runs(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pinned = project / "tests" / "test_counts.py"
    assert call(f"{project}/passes/mine.py:mine", "-m", "own.*", "--quick", "--json", "--pin", str(pinned)) == 0
    said = json.loads(capfd.readouterr().out)["passes"]
    found = {each["micrograph"]: each for each in next(iter(said.values()))}
    assert {name: each["matches"] for name, each in found.items()} == {
        "own.one": {"twice": 1},
        "own.swapped": {"twice": 0},
    }
    assert found["own.swapped"]["misses"][0]["differences"][0]["kind"] == "order"
    text = pinned.read_text()
    assert '"../passes/mine.py:mine"' in text and 'FOLDERS = ["../passes/micrographs"]' in text
    assert pytest.main([str(pinned), "-q", "-p", "no:cacheprovider", "--rootdir", str(project)]) == 0
    wrong = project / "tests" / "test_other_counts.py"
    wrong.write_text(text.replace('"twice": 0', '"twice": 1'))
    assert pytest.main([str(wrong), "-q", "-p", "no:cacheprovider", "--rootdir", str(project)]) == 1
    assert "the other way round" in capfd.readouterr().out


def test_what_was_asked_of_the_command_is_pinned_with_the_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from conformance.passes.examination import Examination
    from conformance.passes.pin import write

    monkeypatch.chdir(project)
    made = Examination("mine", "own.one", "sm_90", "2.15.0", {"twice": 0})
    asked = {"micrograph": ("own.*",), "micrographs": Path("more"), "target": "sm_90", "hook": "joint_pre"}
    text = write(Path("tests/test_counts.py"), {"passes/mine.py:mine": [made]}, asked).read_text()
    command = "passes/mine.py:mine -m 'own.*' --micrographs more -t sm_90 --hook joint_pre --pin tests/test_counts.py"
    assert f"conformance pass {command}\n" in text and str(project) not in text
    pinned: dict[str, Any] = {}
    exec(text, pinned)
    assert pinned["COUNTS"] == {"../passes/mine.py:mine": {"own.one": {"twice": 0}}}
    assert pinned["FOLDERS"] == ["../passes/micrographs", "../more"]
    assert (pinned["TARGET"], pinned["HOOK"]) == ("sm_90", "joint_pre")


def test_every_example_says_how_it_is_run() -> None:
    files = sorted(EXAMPLES.glob("*.py"))
    assert len(files) >= 7
    for file in files:
        text = file.read_text()
        named = next(line for line in text.splitlines() if "conformance pass examples" in line)
        address = next(word for word in named.split() if ".py:" in word)
        path, _, name = address.partition(":")
        assert path == f"examples/passes/{file.name}" and (
            f"{name} =" in text or f"class {name}" in text or f"def {name}" in text
        )
