"""Runs graphs that were made for the code generator. There, an op that writes into its first argument and returns nothing (`_foreach_add_`)
is used as if it returned that argument: lowering has it so, and calling the op does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

from conformance.torch_seam import OpOverload, schema_of


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
    if not isinstance(gm, fx.GraphModule) or not any(_is_used_for_what_it_wrote(node) for node in gm.graph.nodes):
        return gm
    return lambda *values: GraphRunner(gm).run(*values, enable_io_processing=False)


def _is_used_for_what_it_wrote(node: fx.Node) -> bool:
    return bool(node.users) and isinstance(node.target, OpOverload) and not schema_of(node.target).returns
