"""A lowering pass of Torch-TensorRT's kind: x * rsqrt(y) becomes x / sqrt(y), for which an engine has layers of its own.

conformance pass examples/passes/tensorrt_lowering.py:rsqrt_to_division -b torch_tensorrt -m norm.rmsnorm
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule

backend = "torch_tensorrt"
micrographs = "norm.rmsnorm norm.add_rmsnorm"
aten = torch.ops.aten


def rsqrt_to_division(gm: GraphModule, settings: Any) -> GraphModule:
    for node in list(gm.graph.nodes):
        if node.target is not aten.mul.Tensor:
            continue
        value, scale = node.args
        if getattr(scale, "target", None) is aten.rsqrt.default and len(scale.users) == 1:
            with gm.graph.inserting_before(node):
                root = gm.graph.call_function(aten.sqrt.default, scale.args)
                quotient = gm.graph.call_function(aten.div.Tensor, (value, root))
            root.meta, quotient.meta = dict(scale.meta), dict(node.meta)
            node.replace_all_uses_with(quotient)
            gm.graph.erase_node(node)
            gm.graph.erase_node(scale)
    gm.recompile()
    return gm
