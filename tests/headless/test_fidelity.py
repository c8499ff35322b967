"""Kernels held against a record: equal, different with a readable diff, or not comparable and said so."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from conformance.headless import fidelity
from conformance.library import load
from conformance.target import Target

RECORDS = sorted((Path(__file__).parents[2] / "reports" / "fidelity").glob("*.json"))
SAMPLE = (
    "pointwise.chain",
    "norm.add_rmsnorm",
    "reduction.softmax",
    "training.linear",
    "dynamic.length_guard",
    "attention.gqa",
)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return fidelity.record(Target("sm_90"), {"pointwise.chain": load()["pointwise.chain"]})


def test_a_record_equals_itself(made: dict[str, Any]) -> None:
    found = list(fidelity.compare(made, made))
    assert found and all(one.equal for one in found)
    assert made["capability"] == "sm_90" and not fidelity.comparable(made)


def test_where_it_was_made_is_no_part_of_a_kernel() -> None:
    one = "x = {'num_load': 1, 'backend_hash': '00FF', 'file': '/tmp/torchinductor_me/ab/k.py'}"
    other = "x = {'num_load': 1, 'backend_hash': 'ABCD', 'file': '/var/torchinductor_you/cd/k.py'}"
    assert fidelity.normalised(one) == fidelity.normalised(other)
    assert fidelity.normalised(one) != fidelity.normalised(one.replace("1", "2", 1))


def test_a_difference_is_shown(made: dict[str, Any]) -> None:
    other = copy.deepcopy(made)
    kernels = other["micrographs"]["pointwise.chain"]["kernels"]
    name = next(iter(kernels))
    assert "cc=90" in kernels[name]
    kernels[name] = kernels[name].replace("cc=90", "cc=80")
    (found,) = fidelity.compare(made, other)
    assert not found.equal and "cc=90" in found.diff and "cc=80" in found.diff
    assert len(found.diff.splitlines()) < 12  # the item, and not the whole line of metadata


def test_a_kernel_that_only_one_side_has_is_a_difference(made: dict[str, Any]) -> None:
    other = copy.deepcopy(made)
    other["micrographs"]["pointwise.chain"]["kernels"] = {}
    assert [one.equal for one in fidelity.compare(made, other)] == [False]


def test_another_version_is_not_compared(
    made: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps(made | {"torch": "1.0.0"}))
    assert fidelity.main(["compare", str(file)]) == 2
    assert "torch 1.0.0" in capsys.readouterr().err


def test_no_record_is_a_line_with_the_mend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fidelity.main(["compare", str(tmp_path / "none.json")]) == 2
    said = capsys.readouterr().err
    assert "no such record" in said and "record" in said and "Traceback" not in said


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_headless_kernels_are_the_real_ones(path: Path) -> None:
    """A sample: `python -m conformance.headless.fidelity compare FILE` takes them all."""
    real = fidelity.read(path)
    if reason := fidelity.comparable(real):
        pytest.skip(reason)
    library = load()
    names = [n for n in SAMPLE if real["micrographs"].get(n, {}).get("digest") == library[n].digest()]
    mine = fidelity.record(Target.parse(real["capability"]), {name: library[name] for name in names})
    different = [f"{one.micrograph} {one.kernel}\n{one.diff}" for one in fidelity.compare(real, mine) if not one.equal]
    assert not different, "\n".join(different)
