"""Passes of the user's own for AutoDeploy and Torch-TensorRT, through the same command. Skipped where the compiler is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import library, paths
from conformance.backends.autodeploy.loader import Missing, find
from conformance.backends.torch_tensorrt.installed import installed, missing

EXAMPLES = paths.PACKAGE.parent / "examples" / "passes"
FAULTY = """
import torch

def raises(gm, settings):
    raise ValueError("no such layer")

def returns_nothing(gm, settings):
    gm.recompile()
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
@pytest.mark.skipif(bool(missing(installed())), reason="torch_tensorrt is not there")
def test_a_lowering_pass_runs_after_torch_tensorrts_own(tmp_path: Path) -> None:
    from conformance.passes.torch_tensorrt import TorchTensorRT

    rmsnorm = library.load()["norm.rmsnorm"]
    made = TorchTensorRT(f"{EXAMPLES}/tensorrt_lowering.py:rsqrt_to_division", "sm_90").examine(rmsnorm)
    assert made.matches == {"aten.div.Tensor": 1, "aten.sqrt.default": 1} and made.serious() == []
    (tmp_path / "faulty.py").write_text(FAULTY)
    kinds = {
        name: [f.kind for f in TorchTensorRT(f"{tmp_path}/faulty.py:{name}", "sm_90").examine(rmsnorm).findings]
        for name in ("raises", "returns_nothing")
    }
    assert kinds == {"raises": ["raised"], "returns_nothing": ["broken_graph"]}
