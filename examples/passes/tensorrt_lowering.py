"""Lowering passes of Torch-TensorRT's kind: a product with a reciprocal becomes a division.

The first one looks for `aten.rsqrt`, which Torch-TensorRT decomposes to `1 / sqrt` before any lowering pass sees it: it never matches, and
`conformance pass` says so. The second one looks for what is there.

conformance pass examples/passes/tensorrt_lowering.py:reciprocal_to_division -m norm.rmsnorm
conformance pass examples/passes/tensorrt_lowering.py:rsqrt_to_division -m norm.rmsnorm
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

backend = "torch_tensorrt"
micrographs = "norm.rmsnorm norm.add_rmsnorm"
aten = torch.ops.aten


def rsqrt_to_division(gm: GraphModule, settings: Any) -> GraphModule:
    """x * rsqrt(y) → x / sqrt(y)."""
    for product, value, scale in products(gm, aten.rsqrt.default):
        with gm.graph.inserting_before(product):
            root = gm.graph.call_function(aten.sqrt.default, scale.args)
        root.meta = dict(scale.meta)
        divide(gm, product, value, scale, root)
    gm.recompile()
    return gm


def reciprocal_to_division(gm: GraphModule, settings: Any) -> GraphModule:
    """x * (1 / y) → x / y."""
    for product, value, scale in products(gm, aten.div.Tensor):
        if scale.args[0] == 1:
            divide(gm, product, value, scale, scale.args[1])
    gm.recompile()
    return gm


def products(gm: GraphModule, op: Any) -> list[tuple[Node, Any, Node]]:
    """Products whose second factor is the result of `op` and is used nowhere else: (product, first factor, second factor)."""
    found = []
    for node in gm.graph.nodes:
        second = node.args[1] if node.target is aten.mul.Tensor else None
        if isinstance(second, Node) and second.target is op and len(second.users) == 1:
            found.append((node, node.args[0], second))
    return found


def divide(gm: GraphModule, product: Node, value: Any, scale: Node, divisor: Any) -> None:
    with gm.graph.inserting_before(product):
        quotient = gm.graph.call_function(aten.div.Tensor, (value, divisor))
    quotient.meta = dict(product.meta)
    product.replace_all_uses_with(quotient)
    gm.graph.erase_node(product)
    gm.graph.erase_node(scale)
