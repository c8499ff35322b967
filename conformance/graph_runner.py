"""Runs graphs that were made for the code generator. There, an op that writes into its first argument and returns nothing (`_foreach_add_`)
is used as if it returned that argument: lowering has it so, and calling the op does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

from conformance.errors import CannotRun
from conformance.torch_seam import PASSES_AND_LOWERINGS, OpOverload, schema_of


class GraphRunner(fx.Interpreter):
    """Calls a graph node by node; what an op wrote into stands for what it does not return."""

    def run_node(self, node: fx.Node) -> Any:
        value = super().run_node(node)
        if value is None and _is_used_for_what_it_wrote(node):
            written: Any = self.map_nodes_to_values(node.args, node)
            return written[0]
        return value


def runnable(gm: Callable[..., Any]) -> Callable[..., Any]:
    """The graph as a function of flat values: itself, where calling it does, and where it is no graph but stands for one."""
    if isinstance(gm, fx.GraphModule) and any(_is_code_for_lowering(node) for node in gm.graph.nodes):
        return _refused
    if not isinstance(gm, fx.GraphModule) or not any(_is_used_for_what_it_wrote(node) for node in gm.graph.nodes):
        return gm
    return lambda *values: GraphRunner(gm).run(*values, enable_io_processing=False)


def _refused(*values: Any) -> Any:
    raise CannotRun("a part of the graph says how code is made for it, and not what it computes")


def _is_code_for_lowering(node: fx.Node) -> bool:
    """Is it a pattern's own lowering, which takes what lowering makes of tensors?"""
    owner = getattr(node.target, "__module__", None)
    return node.op == "call_function" and isinstance(owner, str) and owner.startswith(PASSES_AND_LOWERINGS)


def _is_used_for_what_it_wrote(node: fx.Node) -> bool:
    return bool(node.users) and isinstance(node.target, OpOverload) and not schema_of(node.target).returns
