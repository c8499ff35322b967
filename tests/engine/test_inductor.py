"""Inductor itself, watched: one compile, all stages, the same every time."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import Contract, Micrograph, Tensor, backends, paths
from conformance.backends.base import Case
from conformance.backends.inductor import cache_stage, kernel_store
from conformance.backends.inductor.seam import seam
from conformance.library import load
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU
from conformance.verdict import Kind, Verdict

pytestmark = pytest.mark.own_process  # it forks, or compiles with a patched compiler

LIBRARY = load()


def examined(name: str) -> Any:
    return results_here(LIBRARY[name], backends.get("inductor"), CPU)


def test_one_compile_serves_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real code generation happens once, for seven verdicts; cache probes are hits or stop at the miss."""
    import torch._inductor.graph as graph

    generated = []
    original = graph.GraphLowering.codegen

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        generated.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(graph.GraphLowering, "codegen", counted)
    results = examined("pointwise.chain")
    assert {stage: result.verdict for stage, result in results.items()} == dict.fromkeys(STAGES, Verdict.PASS), [
        result.reason for result in results.values()
    ]
    assert len(generated) == 1


class _Broken(Micrograph):
    inputs = (Tensor("6 4"),)
    settings = {"dynamo.capture_scalar_outputs": True, "dynamo.capture_dynamic_output_shape_ops": True}
    contract = Contract()


class OnTensor(_Broken):
    """A branch on a tensor."""

    def forward(self, x):
        y = x + 1
        return y * 2 if y.sum() > 0 else y * 3


class OnUnknownSize(_Broken):
    """A size that is known only at run time, of which an op wants to know more."""

    def forward(self, x):
        return torch.trapezoid(x[x[:, 0] > 0], dim=0) + 1


class InLoop(_Broken):
    """A break in a loop: the whole frame is left to Python."""

    def forward(self, x):
        for _ in range(2):
            x = x + 1
            torch._dynamo.graph_break()
        return x


@pytest.mark.parametrize("micrograph", [OnTensor, OnUnknownSize, InLoop])
def test_a_break_that_dynamo_does_not_count_is_one(micrograph: type[Micrograph]) -> None:
    capture = results_here(micrograph, backends.get("inductor"), CPU, (Stage.CAPTURE,))[Stage.CAPTURE]
    assert capture.verdict is Verdict.FAIL
    assert "1 graph breaks, contract says 0" in capture.reason, capture.reason


def test_nothing_stays_patched() -> None:
    hooks = [key for key in seam.names if seam.has(key)]
    before = {key: getattr(seam, key) for key in hooks}
    compiled = backends.get("inductor").compile(Case(LIBRARY["pointwise.chain"], CPU))
    assert any(getattr(seam, key) != before[key] for key in hooks)
    compiled.close()
    assert [
        key for key in hooks if getattr(seam, key) != before[key]
    ] == []  # each look makes a new bound method: no `is`


def test_a_crash_is_an_error_even_where_it_keeps_hooks_from_being_called(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.compile_fx as compile_fx

    def crashes(*args: Any, **kwargs: Any) -> Any:
        raise IndexError("seeded")

    monkeypatch.setattr(compile_fx, "_recursive_joint_graph_passes", crashes)
    results = examined("pointwise.chain")
    bad = [result for result in results.values() if result.verdict is Verdict.ERROR]
    assert bad and "seeded" in bad[0].reason, {str(stage): str(result.verdict) for stage, result in results.items()}
    assert Verdict.PASS not in {results[stage].verdict for stage in results if stage.order >= bad[0].cell.stage.order}


def test_a_wrong_kernel_is_codegen_and_a_wrong_pass_postgrad(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.codegen.cpp import CppOverrides, CppVecOverrides

    for overrides in (CppOverrides, CppVecOverrides):
        monkeypatch.setattr(overrides, "tanh", staticmethod(lambda x: f"({x})"))
    results = examined("pointwise.chain")
    assert (
        results[Stage.CODEGEN].verdict is Verdict.FAIL and results[Stage.CODEGEN].findings[0].kind is Kind.WRONG_RESULT
    )
    assert results[Stage.RUNTIME].verdict is Verdict.BLOCKED
    monkeypatch.undo()

    import torch._inductor.compile_fx as compile_fx

    passes = compile_fx._recursive_post_grad_passes

    def spoiled(gm: Any, *args: Any, **kwargs: Any) -> Any:
        passes(gm, *args, **kwargs)
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.tanh.default:
                node.target = torch.ops.aten.sin.default
        gm.recompile()

    monkeypatch.setattr(compile_fx, "_recursive_post_grad_passes", spoiled)
    results = examined("pointwise.chain")
    assert results[Stage.POSTGRAD].verdict is Verdict.FAIL
    assert all(results[stage].verdict is Verdict.PASS for stage in Stage.POSTGRAD.before())


@pytest.mark.parametrize("name", ["upstream.neutral_numbers.times_one_alone", "surface.layers.dropped_not_training"])
def test_a_program_of_which_nothing_is_left_is_examined_in_every_stage(name: str) -> None:
    """`x * 1` is taken away by a pass, dropout without training by decomposition, and then nothing is generated: no hook behind the passes is
    called, and that is no other version of torch."""
    results = examined(name)
    wrong = [stage for stage, result in results.items() if result.verdict is Verdict.FAIL]
    assert wrong in ([], [Stage.POSTGRAD]), "torch 2.14 and 2.15 give the input itself"
    assert all(result.verdict is not Verdict.UNAVAILABLE for result in results.values()), results


def test_a_command_that_a_fast_linker_cannot_carry_out_is_run_as_torch_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(command: str, folder: str) -> None:
        asked.append(command)
        if "-fuse-ld" in command:
            raise RuntimeError("collect2: error")

    monkeypatch.setattr(kernel_store, "_fast_linker", lambda: "gold")
    kernel_store._compiled(run, "g++ a.cpp -shared -o a.so", "")
    kernel_store._compiled(run, "g++ a.cpp -c -o a.o", "")
    assert asked == ["g++ -fuse-ld=gold a.cpp -shared -o a.so", "g++ a.cpp -shared -o a.so", "g++ a.cpp -c -o a.o"]


def test_a_kernel_is_linked_against_the_names_of_torchs_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of their symbols it uses is settled when it is loaded, by the libraries themselves."""
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path))
    kernel_store._libraries_by_name.cache_clear()
    source, library = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(
        'extern "C" float Sleef_no_such_function(float); extern "C" float f(float x) { return Sleef_no_such_function(x); }'
    )
    command = f"g++ {source} -shared -fPIC -o {library} -ltorch -ltorch_cpu -L{Path(torch.__file__).parent / 'lib'}"
    subprocess.run(shlex.split(kernel_store._linked_fast(command)), check=True)
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    kernel_store._libraries_by_name.cache_clear()
    assert "[libtorch_cpu.so]" in needed and "[libtorch.so]" in needed
    with pytest.raises(OSError, match="Sleef_no_such_function"):
        ctypes.CDLL(str(library), mode=os.RTLD_NOW)


def test_the_store_of_compiled_kernels_forgets_what_was_not_asked_for_the_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_store, "MOST_BYTES", 25)
    folder = paths.cache_folder("cpp", "ab")
    for age, name in enumerate(("new", "middle", "old")):
        file = folder / name
        file.write_bytes(b"x" * 10)
        os.utime(file, (1000 - age, 1000 - age))
    kernel_store.prune()
    assert {file.name for file in folder.iterdir()} == {"new", "middle"}


class HalfTrained(Micrograph):
    """Half precision with gradients: eager rounds in each op, a fused kernel once. Neither is wrong."""

    inputs = (Tensor("9 9", torch.float16, grad=True), Tensor("9 9", torch.float16, grad=True))
    contract = Contract()

    def forward(self, x, y):
        return (x * y + x).sum(-1) * y.exp()


class ComplexMade(Micrograph):
    """torch.complex, which Inductor leaves to the library although torch could decompose it."""

    inputs = (Tensor("4 5"), Tensor("4 5"))
    contract = Contract()

    def forward(self, x, y):
        return torch.complex(x, y) * 2


@pytest.mark.parametrize("micrograph", [HalfTrained, ComplexMade])
def test_what_is_permitted_is_quiet(micrograph: type[Micrograph]) -> None:
    results = results_here(micrograph, backends.get("inductor"), CPU)
    assert {stage.value: result.reason for stage, result in results.items() if result.verdict is not Verdict.PASS} == {}


@pytest.mark.parametrize("number", [2.0, 0.0, 1e16, -3.4e38, 1e300])
def test_the_number_that_a_key_must_tell_is_another_one(number: float) -> None:
    """1e16 + 0.5 is 1e16: a cache that served that program was said to be stale."""
    traced = torch.fx.symbolic_trace(lambda x: x * number)
    assert cache_stage.changed_constant(traced)
    assert number not in [arg for node in traced.graph.nodes for arg in node.args]


def test_a_number_that_is_not_finite_is_left_as_it_is() -> None:
    assert not cache_stage.changed_constant(torch.fx.symbolic_trace(lambda x: x.masked_fill(x > 0, float("-inf"))))


def test_the_rate_of_a_dropout_is_no_number_that_a_key_must_tell() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    given = (x, x, x, 8, 2, None, None, None, None, False, 0.1)
    graph.output(graph.call_function(torch.nn.functional.multi_head_attention_forward, given))
    assert not cache_stage.changed_constant(torch.fx.GraphModule({}, graph))
