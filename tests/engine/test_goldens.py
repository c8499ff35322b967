"""Where the text itself is what people rely on, it is written down. `EXPECTTEST_ACCEPT=1 pytest …` takes what is there now."""

from __future__ import annotations

import re

import pytest
from expecttest import assert_expected_inline

from conformance import backends
from conformance.library import load
from conformance.session import results_here
from conformance.stage import Stage
from conformance.target import CPU

pytestmark = pytest.mark.own_process  # what earlier tests compiled is in no cache


def text(name: str, stage: Stage, which: str) -> str:
    """One text of one stage, without what a version of torch may write beside it."""
    result = results_here(load()[name], backends.get("inductor"), CPU, [stage])[stage]
    lines = [line for line in result.observation.texts[which].splitlines() if line.strip() and "# " not in line]
    return "\n".join(re.sub(r";  .*", "", line) for line in lines)


def test_a_cache_write_becomes_a_write_in_place():
    assert_expected_inline(
        text("kv_cache.slice_scatter", Stage.POSTGRAD, "graph after"),
        """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[1, 2, 12, 8]", arg1_1: "f32[1, 2, 1, 8]"):
        slice_tensor: "f32[1, 2, 1, 8]" = torch.ops.aten.slice.Tensor(arg0_1, 2, 3, 4)
        copy__default: "f32[1, 2, 1, 8]" = torch.ops.aten.copy_.default(slice_tensor, arg1_1)
        mul: "f32[1, 2, 12, 8]" = torch.ops.aten.mul.Tensor(arg0_1, 2.0)
        return (mul,)""",
    )


def test_a_write_to_an_input_ends_the_functional_graph():
    assert_expected_inline(
        text("mutation.add_input", Stage.DECOMPOSITION, "graph"),
        """\
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[5, 13]"):
        add: "f32[5, 13]" = torch.ops.aten.add.Tensor(arg0_1, 1.0)
        mul: "f32[5, 13]" = torch.ops.aten.mul.Tensor(add, 2.0)
        copy_: "f32[5, 13]" = torch.ops.aten.copy_.default(arg0_1, add)
        return (mul,)""",
    )


def test_what_is_fused_with_what():
    assert_expected_inline(
        text("norm.rmsnorm_two_consumers", Stage.FUSION, "groups"),
        """group 0: op0 op1 op2""",
    )
