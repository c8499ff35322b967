"""Passes of the user's own for AutoDeploy and Torch-TensorRT, through the same command. Skipped where the compiler is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import library, paths
from conformance.backends.autodeploy.loader import Missing, find
from conformance.backends.torch_tensorrt.installed import installed, missing
from conformance.errors import UsageError
from conformance.stage import Stage

EXAMPLES = paths.PACKAGE.parent / "examples" / "passes"
LOWERING = """
import torch

def raises(gm, settings):
    raise ValueError("no such layer")

def runs_on(gm, settings):
    while True:
        pass

def returns_nothing(gm, settings):
    gm.recompile()

def breaks_the_graph(gm, settings):
    node = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.sqrt.default)
    node.args = (next(iter(node.users)),)
    return gm

def forgets_metadata(gm, settings):
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.sqrt.default):
        with gm.graph.inserting_before(node):
            fresh = gm.graph.call_function(torch.ops.aten.pow.Tensor_Scalar, (node.args[0], 0.5))
        node.replace_all_uses_with(fresh)
        gm.graph.erase_node(node)
    return gm
"""
CONVERTERS = """
import torch
import torch_tensorrt
from torch_tensorrt.dynamo.conversion import ConverterPriority, dynamo_tensorrt_converter

@dynamo_tensorrt_converter(torch.ops.aten.silu.default, supports_dynamic_shapes=True)
def of_silu(ctx, target, args, kwargs, name):
    raise ValueError("never called")

@dynamo_tensorrt_converter(
    torch.ops.aten.sigmoid.default, priority=ConverterPriority.HIGH, supports_dynamic_shapes=True
)
def raises(ctx, target, args, kwargs, name):
    raise ValueError("no such layer")
"""
TRANSFORMS = """
import torch
from tensorrt_llm._torch.auto_deploy.transform.interface import BaseTransform, TransformInfo

backend = "autodeploy"
config = {"stage": "post_export"}
aten = torch.ops.aten

class Raises(BaseTransform):
    def _apply(self, gm, cm, factory, shared_config):
        raise ValueError("no such kernel")

class RunsOn(BaseTransform):
    def _apply(self, gm, cm, factory, shared_config):
        while True:
            pass

class BreaksTheGraph(BaseTransform):
    def _apply(self, gm, cm, factory, shared_config):
        node = gm.graph.find_nodes(op="call_function", target=aten.silu.default)[0]
        node.args = (next(iter(node.users)),)
        return gm, TransformInfo(skipped=False, num_matches=1, is_clean=False, has_valid_shapes=True)

class ForgetsMetadata(BaseTransform):
    scale = 1.0

    def _apply(self, gm, cm, factory, shared_config):
        nodes = gm.graph.find_nodes(op="call_function", target=aten.silu.default)
        for node in nodes:
            with gm.graph.inserting_after(node):
                fresh = gm.graph.call_function(aten.mul.Tensor, (node, self.scale))
            node.replace_all_uses_with(fresh, delete_user_cb=lambda user: user is not fresh)
            if self.scale != 1.0:
                fresh.meta = dict(node.meta)
        return gm, TransformInfo(skipped=False, num_matches=len(nodes), is_clean=False, has_valid_shapes=True)

class ComputesSomethingElse(ForgetsMetadata):
    scale = 2.0

class NoTransform:
    pass
"""


def _no_autodeploy() -> str:
    try:
        find()
    except Missing as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.own_process
@pytest.mark.skipif(bool(_no_autodeploy()), reason="AutoDeploy is not there: set TRTLLM_SRC")
def test_a_transform_matches_before_autodeploys_own_and_is_told_who_took_its_match(tmp_path: Path) -> None:
    from conformance.passes.autodeploy import AutoDeploy

    swiglu = library.load()["mlp.swiglu"]
    made = AutoDeploy(f"{EXAMPLES}/autodeploy_silu.py:FuseSiluTimes", "torch").examine(swiglu)
    assert made.matches == {"fuse_silu_times": 1} and made.serious() == []
    assert any("silu_times" in line for line in made.diff() if line.startswith("+"))
    late = AutoDeploy(f"{EXAMPLES}/autodeploy_silu.py:FuseSiluTimes", "torch")
    late.stage = late.config["stage"] = "post_load_fusion"
    made = late.examine(swiglu)
    assert made.matches == {"fuse_silu_times": 0}
    assert made.loss is not None and made.loss.step == "pattern_matcher: match_swiglu_pattern"


@pytest.mark.slow
@pytest.mark.own_process
@pytest.mark.skipif(bool(_no_autodeploy()), reason="AutoDeploy is not there: set TRTLLM_SRC")
def test_each_faulty_transform_is_one_finding(tmp_path: Path) -> None:
    from conformance.passes.autodeploy import AutoDeploy

    swiglu = library.load()["mlp.swiglu"]
    file = tmp_path / "faulty.py"
    file.write_text(TRANSFORMS)
    for name, kind in {
        "Raises": "raised",
        "RunsOn": "timeout",
        "BreaksTheGraph": "raised",  # AutoDeploy checks the graph itself, and raises
        "ForgetsMetadata": "metadata_loss",
        "ComputesSomethingElse": "wrong_result",
    }.items():
        made = AutoDeploy(f"{file}:{name}", "torch", deep=False, limit=2.0).examine(swiglu)
        assert [f.kind for f in made.findings] == [kind], name
    with pytest.raises(UsageError, match="derive it from AutoDeploy's BaseTransform"):
        AutoDeploy(f"{file}:NoTransform", "torch")


needs_torch_tensorrt = pytest.mark.skipif(bool(missing(installed())), reason="torch_tensorrt is not there")


@pytest.mark.slow
@pytest.mark.own_process
@needs_torch_tensorrt
def test_a_lowering_pass_runs_after_torch_tensorrts_own_and_is_told_which_decomposition_took_its_match() -> None:
    from conformance.passes.torch_tensorrt import TorchTensorRT

    rmsnorm = library.load()["norm.rmsnorm"]
    made = TorchTensorRT(f"{EXAMPLES}/tensorrt_lowering.py:reciprocal_to_division", "sm_90").examine(rmsnorm)
    assert made.matches == {"aten.div.Tensor": 1} and made.serious() == [] and made.loss is None
    made = TorchTensorRT(f"{EXAMPLES}/tensorrt_lowering.py:rsqrt_to_division", "sm_90").examine(rmsnorm)
    assert made.matches == {"rsqrt_to_division": 0}
    assert made.loss is not None and made.loss.stage is Stage.DECOMPOSITION
    assert made.loss.step == "the decomposition of aten.rsqrt.default"


@pytest.mark.slow
@pytest.mark.own_process
@needs_torch_tensorrt
def test_each_faulty_lowering_pass_is_one_finding(tmp_path: Path) -> None:
    from conformance.passes.torch_tensorrt import TorchTensorRT

    rmsnorm = library.load()["norm.rmsnorm"]
    file = tmp_path / "faulty.py"
    file.write_text(LOWERING)
    for name, kind in {
        "raises": "raised",
        "runs_on": "timeout",
        "returns_nothing": "broken_graph",
        "breaks_the_graph": "broken_graph",
        "forgets_metadata": "metadata_loss",
    }.items():
        made = TorchTensorRT(f"{file}:{name}", "sm_90", limit=2.0).examine(rmsnorm)
        assert [f.kind for f in made.findings] == [kind], name


@pytest.mark.slow
@pytest.mark.own_process
@needs_torch_tensorrt
def test_a_converter_counts_what_it_converts_and_is_told_who_took_its_op(tmp_path: Path) -> None:
    from conformance.passes.torch_tensorrt import TorchTensorRT

    swiglu = library.load()["mlp.swiglu"]
    made = TorchTensorRT(f"{EXAMPLES}/tensorrt_converter.py:sigmoid_by_tanh", "sm_90").examine(swiglu)
    assert made.matches == {"sigmoid_by_tanh": 1} and made.serious() == [] and made.built
    file = tmp_path / "faulty.py"
    file.write_text(CONVERTERS)
    made = TorchTensorRT(f"{file}:raises", "sm_90").examine(swiglu)
    assert [str(f) for f in made.findings] == ["raised: ValueError: no such layer"]
    made = TorchTensorRT(f"{file}:of_silu", "sm_90").examine(swiglu)
    assert made.matches == {"of_silu": 0} and [f.kind for f in made.findings] == ["crash"]  # the other one raises
    assert made.loss is not None and made.loss.step == "the decomposition of aten.silu.default"
