"""A transform of AutoDeploy's kind: SiLU of one value times another becomes one custom op.

TRTLLM_SRC=DIR conformance pass examples/passes/autodeploy_silu.py:FuseSiluTimes -m mlp.swiglu
"""

from __future__ import annotations

from typing import Any

import torch
from tensorrt_llm._torch.auto_deploy.transform.interface import BaseTransform, TransformInfo, TransformRegistry
from torch.fx import GraphModule

backend = "autodeploy"
config = {"stage": "post_export"}  # before AutoDeploy's own patterns take silu away
micrographs = "mlp.swiglu mlp.swiglu_tapped"
aten = torch.ops.aten


@torch.library.custom_op("conformance_examples::silu_times", mutates_args=())
def silu_times(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate) * up


@silu_times.register_fake
def _(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(gate)


@TransformRegistry.register("fuse_silu_times")
class FuseSiluTimes(BaseTransform):
    """silu(gate) * up → conformance_examples.silu_times."""

    def _apply(self, gm: GraphModule, cm: Any, factory: Any, shared_config: Any) -> tuple[GraphModule, TransformInfo]:
        count = 0
        for node in list(gm.graph.nodes):
            if node.target is not aten.mul.Tensor:
                continue
            for silu, up in (node.args, node.args[::-1]):
                if getattr(silu, "target", None) is aten.silu.default and len(silu.users) == 1:
                    with gm.graph.inserting_before(node):
                        fused = gm.graph.call_function(
                            torch.ops.conformance_examples.silu_times.default, (silu.args[0], up)
                        )
                    fused.meta = dict(node.meta)
                    node.replace_all_uses_with(fused)
                    gm.graph.erase_node(node)
                    gm.graph.erase_node(silu)
                    count += 1
                    break
        info = TransformInfo(skipped=False, num_matches=count, is_clean=count == 0, has_valid_shapes=True)
        return gm, info
