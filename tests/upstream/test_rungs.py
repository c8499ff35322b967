"""A failing test is run with ever more of the compiler; the first rung that fails in the same way names the stage."""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from small_project import Small

from conformance.stage import STAGES
from conformance.upstream import parts, rungs
from conformance.upstream.rungs import Rung

FAULTS = """
import unittest
import torch

@torch._dynamo.allow_in_graph
def plus_one(x):
    return x + (1 if type(x) is torch.Tensor else 2)  # wrong as soon as AOTAutograd traces it

def in_a_graph(x):
    return x + (5 if torch.compiler.is_compiling() else 1)  # wrong as soon as Dynamo captures it

class TestFaults(unittest.TestCase):
    def check(self, function):
        compiled = torch.compile(function, backend="aot_eager")
        self.assertEqual(compiled(torch.ones(3)).tolist(), [2.0, 2.0, 2.0])
    def test_wrong_in_aot(self): self.check(lambda x: plus_one(x))
    def test_wrong_in_dynamo(self): self.check(in_a_graph)
    def test_wrong_without_a_compiler(self): self.check(lambda x: x)
    def test_wrong_in_a_part(self): torch._dynamo.lookup_backend("no such backend")
    def test_wrong_by_itself(self): self.assertEqual(1, 2)
"""


SMALL_LADDER = (
    Rung("python", "", (), "no compiler", environ={"LEVEL": "0"}),
    Rung("captured", "capture", (), "one step", environ={"LEVEL": "1"}),
    Rung("decomposed", "decomposition", (), "two steps", environ={"LEVEL": "2"}),
    Rung("whole", "codegen", (), "all three"),
)
SMALL_COMPILER = """
import os
LEVEL = int(os.environ.get("LEVEL", 3))

def test_from_two_on(): assert LEVEL < 2, "wrong"
def test_at_three_only(): assert LEVEL < 3, "wrong"
def test_other_failure_below(): assert False, "wrong" if LEVEL else "nothing was compiled"
def test_crashes_from_one_on(): LEVEL and os.abort()
def test_always(): assert not "wrong"
"""


def test_the_first_rung_that_fails_in_the_same_way_names_the_stage(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler of three steps, switched by a variable of the environment."""
    monkeypatch.setitem(rungs.LADDERS, "small", SMALL_LADDER)
    small.write("tests/test_compiler.py", SMALL_COMPILER)
    small.write_map(ladder="small", preload=("unittest",))
    found = small.run(["tests/test_compiler.py"])
    told = {name.rpartition("::test_")[2]: line["observation"] for name, line in found.items() if "::test_" in name}
    assert all("fails_from" in facts for facts in told.values()), {
        name: (line["verdict"], line["reason"]) for name, line in found.items()
    }
    assert {name: facts["fails_from"] for name, facts in told.items()} == {
        "from_two_on": "decomposition",
        "at_three_only": "codegen",
        "other_failure_below": "capture",
        "crashes_from_one_on": "capture",
        "always": "fails without the compiler",
    }
    assert told["from_two_on"]["rungs"] == {
        "whole": "fails alike",
        "python": "passes",
        "captured": "passes",
        "decomposed": "fails alike",
    }
    assert told["other_failure_below"]["rungs"]["python"] == "fails otherwise"
    assert found["tests/test_compiler.py::test_from_two_on"]["reason"] == (
        "belongs to fusion; fails from decomposition on: AssertionError: wrong"
    )


@pytest.mark.slow
def test_the_rungs_of_torch(small: Small) -> None:
    """The same with real compiles: no compiler, Dynamo, AOTAutograd."""
    small.write("tests/test_faults.py", FAULTS)
    small.write_map(ladder="pytorch")
    found = small.run(["tests/test_faults.py"], timeout=120.0)
    told = {name.rpartition("::test_")[2]: line["observation"] for name, line in found.items() if "::test_" in name}
    assert all("fails_from" in facts for facts in told.values()), {
        name: (line["verdict"], line["reason"]) for name, line in found.items()
    }
    assert {name: facts["fails_from"] for name, facts in told.items()} == {
        "wrong_in_aot": "decomposition",
        "wrong_in_dynamo": "capture",
        "wrong_without_a_compiler": "fails without the compiler",
        "wrong_in_a_part": "fails in capture, which it calls itself",
        "wrong_by_itself": "enters no layer of the compiler that a rung could take away",
    }
    assert told["wrong_in_a_part"]["rungs"] == {"inductor": "fails alike"}, "no further rung is worth its time"
    assert told["wrong_in_aot"]["rungs"] == {
        "inductor": "fails alike",
        "python": "passes",
        "eager": "passes",
        "aot_eager": "fails alike",
    }


def test_a_test_that_passes_when_it_is_run_alone_is_said_to(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second test fails only because the first ran before it in the same process."""
    small.write(
        "tests/test_order.py",
        "import builtins\ndef test_a(): builtins.left = 1\ndef test_b(): assert not hasattr(builtins, 'left')\n",
    )
    monkeypatch.setitem(rungs.LADDERS, "small", SMALL_LADDER)
    small.write_map(ladder="small")
    line = small.run(["tests/test_order.py"])["tests/test_order.py::test_b"]
    assert line["verdict"] == "fail"
    assert line["observation"]["fails_from"] == "passes when it is run alone"


def test_a_function_is_replaced_where_it_was_imported_by_name_too() -> None:
    owner, user = ModuleType("owner_module"), ModuleType("user_module")
    owner.work = user.work = lambda: "old"  # type: ignore[attr-defined]
    sys.modules["user_module"] = user
    try:
        rungs.put(owner, "work", lambda: "new")
    finally:
        del sys.modules["user_module"]
    assert owner.work() == user.work() == "new"


def test_every_ladder_goes_from_no_compiler_to_the_whole() -> None:
    for ladder in rungs.LADDERS.values():
        assert ladder[0].layers == () and ladder[0].stage == ""
        assert not ladder[-1].off and not ladder[-1].backend and not ladder[-1].environ
        for lower, higher in itertools.pairwise(ladder):
            assert set(lower.layers) <= set(higher.layers), f"{higher.name} must allow what {lower.name} allows"
        assert {layer for rung in ladder for layer in rung.layers} <= set(rungs.PROBES)
        assert all(group in rungs.SETTINGS for rung in ladder for group in rung.off)


def test_the_innermost_frame_of_the_compiler_names_the_part() -> None:
    frames = [
        ["/site/torch/_inductor/test_case.py", "run", 1, ""],
        ["/src/test/test_x.py", "test_x", 2, ""],
        ["/site/torch/_dynamo/convert_frame.py", "f", 3, ""],
        ["/site/torch/_inductor/fx_passes/pad_mm.py", "g", 4, ""],
        ["/site/torch/_ops.py", "h", 5, ""],
    ]
    told = [parts.stage_of(frames[:length], "pytorch", "test/test_x.py") for length in (5, 3, 2, 0)]
    assert told == ["postgrad", "capture", "", ""], "what is above the test runs it"
    assert parts.stage_of(frames, "torch_tensorrt", "test/test_x.py") == ""
    asserts = [*frames[1:3], ["/site/torch/testing/_internal/common_utils.py", "assertEqual", 6, ""]]
    assert parts.stage_of(asserts, "pytorch", "test/test_x.py") == ""
    assert set(parts.PARTS) == set(rungs.LADDERS)
    assert {stage for table in parts.PARTS.values() for _, stage in table} == {stage.value for stage in STAGES}


@pytest.mark.parametrize("fragment", [fragment for fragment, _ in parts.PARTS["pytorch"]])
def test_every_part_of_torch_is_there(fragment: str) -> None:
    """In the newest version that the suite knows; an older one may lack a part."""
    place = Path(torch.__file__).parent / fragment.removeprefix("torch/")
    assert list(place.parent.glob(place.name + "*")) or torch.__version__ < "2.15", fragment


@pytest.mark.parametrize("table", ["PROBES", "BACKENDS"])
def test_every_name_of_torch_in_the_tables_exists_here(table: str) -> None:
    """A rung whose name is gone is `not tried`, so that nothing breaks. With a torch that the suite knows, none is."""
    importlib.import_module("torch._inductor.compile_fx")
    for name, candidates in getattr(rungs, table).items():
        if candidates[0].startswith("torch."):
            owner, attribute = rungs.resolve(candidates)
            assert hasattr(owner, attribute), name


def test_a_name_that_is_gone_makes_its_rung_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: dict[str, Any] = {**rungs.BACKENDS, "lookup": ("torch._dynamo.no_such_name",)}
    monkeypatch.setattr(rungs, "BACKENDS", gone)
    eager = next(rung for rung in rungs.LADDERS["pytorch"] if rung.name == "eager")
    assert rungs.Ladder(eager, ()).install() == "torch._dynamo.no_such_name does not exist in this version"


def test_a_module_is_wrapped_as_soon_as_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_module.py").write_text("def work(): return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(rungs.PROBES, "late", ("late_module.work",))
    ladder = rungs.Ladder(Rung("r", "", ("late",), ""), ("late",))
    assert ladder.install() is None
    late = importlib.import_module("late_module")
    assert late.work() == 1 and ladder.layers_of_test() == {"late": 1} and ladder.layers_of_test() == {}
