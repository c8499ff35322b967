"""An error of the compile belongs to the stage that was at work, and not to Dynamo's frames that stand around every stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from conformance import oracle
from conformance.backends.inductor import blame
from conformance.backends.inductor.blame import stage_of
from conformance.backends.inductor.watch import GraphRecord, Watch
from conformance.stage import Stage
from conformance.verdict import Kind


def error_of(program: Callable[..., Any], *inputs: Any, **options: Any) -> BaseException:
    torch._dynamo.reset()
    with pytest.raises(Exception) as raised:
        torch.compile(program, **options)(*inputs)
    return raised.value


def fails(graph: torch.fx.Graph) -> None:
    """A pass that asks a fake tensor for something it has not: the error comes up through `eval_frame._fn`."""
    x = next(node.meta["val"] for node in graph.nodes if node.op == "placeholder")
    with x.fake_mode:
        torch.mm(x, x)


def test_a_decomposition_that_fails_in_a_fake_tensor() -> None:
    """view_copy of an expanded tensor (pytorch#191136): alive in every supported release."""
    error = error_of(lambda x: torch.ops.aten.view_copy(x, (8,)), torch.ones(2).expand(4, 2))
    assert stage_of(error) is Stage.DECOMPOSITION


def test_a_pass_of_inductor_that_fails_in_a_fake_tensor() -> None:
    error = error_of(lambda x: x.sin(), torch.ones(2, 3), options={"post_grad_custom_pre_pass": fails})
    assert stage_of(error) is Stage.POSTGRAD


def test_what_dynamo_itself_refuses() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x.sin()

    assert stage_of(error_of(program, torch.ones(2), fullgraph=True)) is Stage.CAPTURE
    assert stage_of(error_of(lambda x: x @ x, torch.ones(2, 3), backend="eager")) is Stage.CAPTURE


def test_an_error_without_a_frame_of_the_compiler_is_of_the_run() -> None:
    assert stage_of(ValueError("of the program")) is Stage.RUNTIME


@pytest.mark.parametrize(
    "result, stage", [(torch.ones(2), Stage.RUNTIME), ("meta", Stage.DECOMPOSITION)], ids=["tensor", "value"]
)
def test_what_the_graph_gave_is_lost_in_the_wrappers_and_a_value_that_was_read_from_it_is_not(
    result: Any, stage: Stage
) -> None:
    """The caller read a device from a result: that the graph gave tensors says nothing of it."""
    watch = Watch(raw=[torch.ones(2)])
    ref = oracle.Reference(oracle.run(lambda: result, ()), None)
    assert blame.around(watch, [oracle.Difference(Kind.WRONG_RESULT, "output 0", "another one")], ref) is stage


@pytest.mark.parametrize("draws, stage", [(True, Stage.DECOMPOSITION), (False, Stage.POSTGRAD)])
def test_a_graph_that_draws_is_not_compared_with_what_the_joint_passes_draw(draws: bool, stage: Stage) -> None:
    """They replace random numbers by Inductor's own: other numbers are no pass that went wrong."""
    traced = make_fx(lambda: torch.rand(3) if draws else torch.zeros(3))()
    watch = Watch(aot=[traced], joint=[make_fx(lambda: torch.ones(3))()])
    ref = oracle.Reference(oracle.run(lambda: "meta", ()), None)
    wrong = [oracle.Difference(Kind.WRONG_RESULT, "output 0", "another one")]
    assert blame.around(watch, wrong, ref) is stage


def test_what_is_saved_for_the_backward_graph_is_no_result_and_a_pass_that_is_wrong_of_nan_is_found() -> None:
    """The joint passes take `x * 0` for zeros. What the forward graph saves happens to be what eager gives."""

    def joint(primals_1: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return primals_1 * 0, primals_1.clone()

    x = torch.tensor([1.0, float("nan")])
    before = make_fx(joint)(torch.ones(2))
    after = make_fx(lambda primals_1: (torch.zeros(2), primals_1.clone()))(torch.ones(2))
    for gm in (before, after):
        (given,) = [node for node in gm.graph.nodes if node.op == "placeholder"]
        given.name, given.meta["val"] = "primals_1", torch.ones(2)
    watch = Watch(aot=[before], joint=[after], graphs=[GraphRecord("forward")], raw=[torch.zeros(2), x * 0], left=[x])
    ref = oracle.Reference(oracle.run(lambda: x * 0, ()), None)
    wrong = [oracle.Difference(Kind.WRONG_RESULT, "output 0", "1 of 2 elements")]
    assert blame.around(watch, wrong, ref) is Stage.POSTGRAD
