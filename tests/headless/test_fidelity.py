"""Kernels held against a record: equal, different with a readable diff, or not comparable and said so."""

from __future__ import annotations

import copy
import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conformance import oracle
from conformance.backends.base import Case
from conformance.errors import UsageError
from conformance.headless import fidelity, generated
from conformance.library import load
from conformance.target import Target

RECORDS = sorted((Path(__file__).parents[2] / "reports" / "fidelity").glob("h200-torch-*.json"))
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
    return fidelity.record(Target("sm_90"), {"pointwise.chain": lambda: load()["pointwise.chain"]})


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


def test_another_version_is_not_compared(made: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "old.json.gz"
    fidelity.write(file, made | {"torch": "1.0.0"})
    with pytest.raises(UsageError, match=r"torch 1\.0\.0"):
        fidelity.compare_here(file, fidelity.Chosen(), "", 1, str)


def test_another_processor_of_the_host_is_named(made: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    fidelity.write(file, {**made, "machine": "riscv64"})
    assert "is of an riscv64 host" in fidelity.other_host(file)
    fidelity.write(file, made)
    assert fidelity.other_host(file) == ""


def test_some_of_the_drawn_graphs_can_be_chosen() -> None:
    assert list(fidelity.Chosen(("*.3",), generated=12, seed=5).graphs()) == ["generated.seed_5.3"]


def test_no_record_is_a_line_with_the_mend(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such record: .*; make one with `conformance fidelity record"):
        fidelity.compare_here(tmp_path / "none.json", fidelity.Chosen(), "", 1, str)


@pytest.mark.own_process  # processes are forked from one that has compiled nothing
@pytest.mark.slow
def test_drawn_graphs_are_the_same_for_the_comparison(tmp_path: Path) -> None:
    """Four of a seed: graphs of the fuzzer, one with gradients, one model."""
    file = tmp_path / "drawn.json.gz"
    fidelity.record_here(file, fidelity.Chosen(generated=4, seed=5), "sm_90", 2, str)
    names = fidelity.read(file)["micrographs"]
    assert [*names] == [f"generated.seed_5.{index}" for index in range(4)]
    assert [entry["error"] for entry in names.values() if "error" in entry] == []
    found = fidelity.compare_here(file, fidelity.Chosen(), "", 2, str)
    assert found and all(one.equal for one in found)
    assert fidelity.summary(found).endswith(f"all kernels of {len({one.micrograph for one in found})} of 4 graphs")


def test_a_model_of_every_kind_runs_in_eager() -> None:
    """A template with a mistake would only ever be an error on both sides."""
    kinds = set()
    drawn = generated.drawn(400, 1)
    for index in range(3, 400, 4):
        micrograph = drawn[f"generated.seed_1.{index}"]()
        source = inspect.getsource(micrograph)
        kind = re.sub(r"[\d.]+|True|False|relu|gelu|nearest|bilinear|Model\w+", "", source)
        if kind not in kinds:
            kinds.add(kind)
            case = Case(micrograph, Target("cpu"))
            outcome = oracle.run(case.module(), case.inputs(0))
            assert outcome.error is None, f"{source}\n{outcome.error}"
    assert len(kinds) >= len(generated.MODELS)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_headless_kernels_are_the_real_ones(path: Path) -> None:
    """A sample: `conformance fidelity compare FILE` takes them all."""
    real = fidelity.read(path)
    if reason := fidelity.comparable(real):
        pytest.skip(reason)
    library = load()
    names = [n for n in SAMPLE if real["micrographs"].get(n, {}).get("digest") == library[n].digest()]
    mine = fidelity.record(
        Target.parse(real["capability"]), {name: partial(library.__getitem__, name) for name in names}
    )
    different = [f"{one.micrograph} {one.kernel}\n{one.diff}" for one in fidelity.compare(real, mine) if not one.equal]
    assert not different, "\n".join(different)
