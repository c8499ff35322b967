"""The maps: what they say is consistent, and the most specific entry wins."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from small_project import MAP, Small

from conformance import expectations
from conformance.errors import UsageError
from conformance.stage import STAGES
from conformance.upstream import rungs, stage_map
from conformance.upstream.bootstrap import STARTS
from conformance.upstream.checkout import check_map, open_checkout

CHECKOUTS = {"pytorch": "PYTORCH_SRC", "torch_tensorrt": "TORCH_TENSORRT_SRC", "tensorrt_llm": "TRTLLM_SRC"}


def test_the_three_suites_are_mapped() -> None:
    assert stage_map.names() == sorted(CHECKOUTS)


@pytest.mark.parametrize("name", CHECKOUTS)
def test_a_map_is_consistent(name: str) -> None:
    mapped = stage_map.load(name)
    suite = mapped.suite
    assert suite.name == name
    assert suite.ladder in rungs.LADDERS
    assert not suite.bootstrap or suite.bootstrap in STARTS
    assert mapped.ambiguous() == []
    assert {entry.stage for entry in mapped.entries} == set(STAGES), "each of these compilers has tests for every stage"
    for entry in mapped.entries:
        assert entry.file.startswith(tuple(root.split("*")[0] for root in suite.roots)), (
            f"{entry.source}: {entry.file} is below no root"
        )
        assert len(entry.parts) <= 3
        if len(entry.parts) > 1:
            assert mapped.find_file(entry.file), f"{entry.source} maps tests of a file that is not mapped itself"


@pytest.mark.parametrize("name", CHECKOUTS)
def test_a_map_covers_the_checkout_at_hand(name: str) -> None:
    place = os.environ.get(CHECKOUTS[name])
    if not place or not Path(place).is_dir():
        pytest.skip(f"{CHECKOUTS[name]} names no checkout of {name}")
    mapped = stage_map.load(name)
    checkout = open_checkout(Path(place), mapped.suite)
    found = check_map(checkout, stage_map.load(name, checkout.version))
    assert found.files > 100
    assert found.share >= 0.95, found.unmapped


def test_expected_failures_are_of_mapped_files() -> None:
    mapped = {name: stage_map.load(name) for name in stage_map.names()}
    for entry in expectations.load(stage_map.HOME / "expected").entries:
        stage, backend, _, test = entry.cell.split("/", 3)
        suite = next(one for one in mapped.values() if one.suite.backend == backend)
        file = test.removeprefix("upstream:").partition("::")[0]
        assert suite.find_file(file), f"{entry.source}: {file} is not mapped"
        assert stage in {one.value for one in suite.stages_of(file)} | {"*"}, entry.source


def test_the_most_specific_entry_wins() -> None:
    mapped = stage_map.load("pytorch")
    file = "test/inductor/test_torchinductor.py"
    assert str(mapped.find_file(file).stage) == "codegen"
    assert str(mapped.find(f"{file}::CpuTests::test_softmax_cpu").stage) == "codegen"
    assert str(mapped.find(f"{file}::CpuTests::test_horizonal_fusion1_cpu").stage) == "fusion"
    assert str(mapped.find(f"{file}::CpuTests::test_input_mutation1_cpu").stage) == "decomposition"
    assert "multi-gpu" in mapped.find(f"{file}::GPUTests::test_multi_gpu_device_cuda").needs
    assert str(mapped.find(f"{file}::GPUTests::test_multi_gpu_recompile_on_index_cuda").stage) == "capture"
    assert mapped.find("test/distributed/test_c10d.py::A::test_b") is None


def test_an_entry_for_a_later_version_is_left_out(small: Small) -> None:
    small.write_map(MAP + '[[map]]\ntests = "tests/test_later.py"\nstage = "cache"\nchecks = "x"\nwhen = ">=2"\n')
    assert len(stage_map.load("small", "1.0a0", small.maps).entries) == 3
    assert len(stage_map.load("small", "2.1.0", small.maps).entries) == 4


def test_unmapped_and_vanished_are_found(small: Small) -> None:
    small.write("tests/sub/test_new.py", "")
    small.write_map(
        MAP.replace("tests/test_*.py", "tests/test_[!n]*.py")
        + '[[map]]\ntests = "tests/test_gone.py"\nstage = "cache"\nchecks = "x"\n'
    )
    mapped = stage_map.load("small", folder=small.maps)
    found = check_map(small.checkout, mapped)
    assert found.unmapped == ("tests/sub/test_new.py",)
    assert [entry.tests for entry in found.vanished] == ["tests/test_gone.py"]
    assert found.files == 7 and not fnmatchcase("tests/helper.py", "test_*.py")


BROKEN = {
    "is not TOML": "[suite\n",
    "has no \\[suite\\] table": "x = 1\n",
    "lacks 'roots'": MAP.replace('roots = ["tests"]\n', ""),
    "unknown stage in small.toml entry 1 'fuson': did you mean fusion": MAP.replace('"fusion"', '"fuson"'),
    "unknown need in small.toml entry 3 'tpu'": MAP.replace('"gpu"', '"tpu"'),
    "unknown key in small.toml entry 1 'chekcs'": MAP.replace("checks", "chekcs", 1),
    "not a version condition": MAP + '[[map]]\ntests = "a"\nstage = "cache"\nchecks = "x"\nwhen = "2.7"\n',
    "says what its tests check": MAP.replace('checks = "anything"\n', ""),
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_map_is_told_in_one_line(small: Small, said: str) -> None:
    small.write_map(BROKEN[said])
    with pytest.raises(UsageError, match=said):
        stage_map.load("small", folder=small.maps)
