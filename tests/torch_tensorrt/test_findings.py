"""Every finding that the Torch-TensorRT backend makes while it measures can be made: TRT001 … TRT011.

What needs a GPU to go wrong (TRT006 … TRT010) is shown with a module that runs on the CPU, and a way of running it that
is at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.backends.base import Case
from conformance.backends.torch_tensorrt.backend import TorchTensorRTBackend
from conformance.backends.torch_tensorrt.compilation import Compilation
from conformance.backends.torch_tensorrt.installed import installed, missing
from conformance.backends.torch_tensorrt.runtime import observe_runtime
from conformance.backends.torch_tensorrt.seam import seam
from conformance.library import load
from conformance.stage import Stage
from conformance.target import Target
from conformance.trace import Observation
from conformance.verdict import Kind, Verdict

pytestmark = [pytest.mark.library, pytest.mark.own_process]
OURS = load(Path(__file__).parent / "micrographs.py")
LIFTS = not missing(installed()) and seam.has("lift_buffers")
Proceed = Callable[..., Any]


def found(seen: Observation) -> set[tuple[str, Kind]]:
    return {(finding.check, finding.kind) for finding in seen.findings}


def observed(name: str, stage: Stage) -> Observation:
    return TorchTensorRTBackend().compile(Case(OURS[f"micrographs.{name}"], Target("sm_90"))).observe(stage)


# ------------------------------------------------------------------------------------------- without a GPU


def test_trt001_a_dim_that_did_not_stay_symbolic() -> None:
    assert found(observed("specialized", Stage.CAPTURE)) == {("TRT001", Kind.EXTRA_RECOMPILE)}
    assert found(observed("dynamic", Stage.CAPTURE)) == set()


@pytest.mark.skipif(not LIFTS, reason="aliased I/O came with 2.14")
def test_trt002_a_strided_write_that_became_a_contiguous_one() -> None:
    assert found(observed("strided_write", Stage.CODEGEN)) == {("TRT002", Kind.BAD_CODE)}
    assert found(observed("cache_write", Stage.CODEGEN)) == set()


def test_trt003_a_key_that_does_not_see_the_arguments_of_ops() -> None:
    assert found(observed("softmax", Stage.CACHE)) == {("TRT003", Kind.STALE_CACHE)}
    assert found(observed("dynamic", Stage.CACHE)) == set()


def test_trt004_a_builder_that_raises() -> None:
    def breaks(proceed: Proceed, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("the builder gave no engine")

    with seam.subscribe(configure=breaks):
        assert found(observed("plain", Stage.CODEGEN)) == {("TRT004", Kind.CRASH)}


def test_trt011_layers_that_give_integers_for_floats() -> None:
    assert found(observed("fraction", Stage.CODEGEN)) == {("TRT011", Kind.BAD_CODE)}
    assert found(observed("plain", Stage.CODEGEN)) == set()


def test_what_eager_refuses_may_be_refused_while_it_is_compiled() -> None:
    compiled = TorchTensorRTBackend().compile(Case(OURS["micrographs.refused"], Target("sm_90")))
    seen = [compiled.observe(stage) for stage in (Stage.CAPTURE, Stage.CODEGEN)]
    assert not any(one.findings for one in seen) and "refuses" in seen[0].facts
    assert seen[1].verdict is Verdict.UNAVAILABLE and "as eager does" in seen[1].reason


def test_a_complex_output_is_complex_as_of_every_stage() -> None:
    case = Case(OURS["micrographs.complex_output"], Target("sm_90"))
    compiled = TorchTensorRTBackend().compile(case)
    for stage in (Stage.POSTGRAD, Stage.FUSION, Stage.CODEGEN):
        program = compiled.at(stage)
        assert program is not None and torch.equal(program(*case.inputs()), sum(case.inputs()))


def test_trt005_a_pass_that_writes_to_the_users_buffers() -> None:
    def runs_writes(gm: torch.fx.GraphModule, settings: Any) -> torch.fx.GraphModule:
        for buffer in gm.buffers():
            buffer.add_(1)
        return gm

    assert found(observed("buffer_read", Stage.POSTGRAD)) == set()
    with seam.replace(post_passes=[*seam.post_passes[:1], runs_writes, *seam.post_passes[1:]]):
        seen = observed("buffer_read", Stage.POSTGRAD)
    assert found(seen) == {("TRT005", Kind.LOST_MUTATION)}
    assert "the user's buffer offset: the pass runs_writes" in seen.findings[0].detail


# ------------------------------------------------------------------------------ ways of running, at fault


class OnCPU(Case):
    """A case for `cuda` whose tensors are the CPU's."""

    @property
    def run_device(self) -> str:
        return "cpu"


def recorded(module: torch.nn.Module) -> AbstractContextManager[Any]:
    return nullcontext(module)


def saved(program: Any, path: str, arg_inputs: list[Any]) -> None:
    torch.export.save(torch.export.export(program, tuple(arg_inputs)), path)


def right(gm: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
    return gm.forward


@contextmanager
def running(backend: Callable[..., Any] = right, **ways: Any) -> Iterator[Compilation]:
    """A module on the CPU in place of a compiled one, and ways of running it: faithful ones, but for those that are
    given."""
    case = OnCPU(OURS["micrographs.plain"], Target("cuda"))
    made = Compilation(case, case.module().eval())
    made.log.result = case.module().eval()
    given = {
        "enable_cudagraphs": recorded,
        "enable_pre_allocated_outputs": lambda module: nullcontext(),
        "save": saved,
        **ways,
    }
    with pytest.MonkeyPatch.context() as patch, seam.replace(**given):
        patch.setitem(torch._dynamo.backends.registry._COMPILER_FNS, "torch_tensorrt", backend)
        yield made


def test_ways_of_running_that_are_right_give_no_finding() -> None:
    with running() as made:
        seen = observe_runtime(made)
    assert found(seen) == set()
    assert seen.facts["modes"] == dict.fromkeys(("cudagraphs", "preallocated", "torch_compile", "saved"), "agrees")
    assert "no op went to TensorRT" in seen.reason, "what ran was not compiled"


def test_trt006_a_way_of_running_that_raises() -> None:
    def raises(module: Any) -> Any:
        raise KeyError("no such engine")

    with running(enable_cudagraphs=raises) as made:
        assert found(observe_runtime(made)) == {("TRT006", Kind.CRASH)}


def test_trt007_a_recording_that_replays_old_values() -> None:
    def stale(module: torch.nn.Module) -> AbstractContextManager[Any]:
        kept: list[Any] = []

        def replay(*inputs: Any) -> Any:
            kept.append(module(*inputs))
            return kept[0].clone()

        return nullcontext(replay)

    with running(enable_cudagraphs=stale) as made:
        seen = observe_runtime(made)
    assert found(seen) == {("TRT007", Kind.REPLAY_MISMATCH)}
    assert seen.findings[0].detail.startswith("cudagraphs, inputs written before replay 2")


def test_trt008_pre_allocated_outputs_that_are_not_filled() -> None:
    @contextmanager
    def unfilled(module: torch.nn.Module) -> Iterator[None]:
        hook = module.register_forward_hook(lambda module, inputs, output: torch.zeros_like(output))
        yield
        hook.remove()

    with running(enable_pre_allocated_outputs=unfilled) as made:
        assert found(observe_runtime(made)) == {("TRT008", Kind.WRONG_RESULT)}


def test_trt009_a_torch_compile_that_computes_something_else() -> None:
    def wrong(gm: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
        return lambda *given: tuple(x * 2 for x in gm.forward(*given))

    with running(wrong) as made:
        assert found(observe_runtime(made)) == {("TRT009", Kind.WRONG_RESULT)}


def test_trt010_a_saved_program_that_is_another_one() -> None:
    def another(program: Any, path: str, arg_inputs: list[Any]) -> None:
        saved(torch.nn.Tanh(), path, arg_inputs)

    with running(save=another) as made:
        seen = observe_runtime(made)
    assert {check for check, _ in found(seen)} == {"TRT010"}
    assert "loaded in a fresh process" in seen.findings[0].detail
