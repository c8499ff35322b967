"""Which ops of a graph are wrong: all that differ, compiled side by side in one program, each on its own values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from conformance import oracle

Compiled = Callable[[fx.GraphModule, tuple[Any, ...], bool], Sequence[Any]]
FEW, MANY = 12, 60  # groups of ops that are compiled side by side, at first and then


class Probe:
    """`compiled` runs a graph through the compiler, with or without fusing; `record` is told of every compile."""

    def __init__(
        self,
        gm: fx.GraphModule,
        calls: Sequence[fx.Node],
        values: dict[fx.Node, Any],
        compiled: Compiled,
        record: Callable[[str], None],
    ) -> None:
        self.gm, self.calls, self.values, self.compiled, self.record = gm, calls, values, compiled, record
        self._alone: list[fx.Node] | None = None
        self._together: list[list[fx.Node]] | None = None
        self.failed = False  # a compile raised

    @property
    def asked(self) -> bool:
        """Have the ops been compiled side by side, or was it tried?"""
        return self._alone is not None

    @property
    def answered(self) -> bool:
        """Were the ops compiled side by side, and could they be?"""
        return self.asked and not self.failed

    def was_together(self, nodes: list[fx.Node]) -> bool:
        """Are these nodes a group that was found wrong together?"""
        return nodes in (self._together or ())

    def wrong_alone(self) -> list[fx.Node]:
        """The ops that are wrong on their own."""
        if self._alone is None:
            self._alone = self._probed(distinct(self.calls, self.values))
        return self._alone

    def _probed(self, nodes: Sequence[fx.Node]) -> list[fx.Node]:
        """The ops that are wrong with nothing fused: all in one compile, none reading from another."""
        return [group[0] for group in self._side_by_side([[node] for node in nodes], fused=False)]

    def wrong_together(self) -> list[list[fx.Node]]:
        """Where no op is wrong alone: ops that are when fused with their own parts, with a reader, or with one that reads the same."""
        if self._together is None:
            self._together = self._fused()
        return self._together

    def _fused(self) -> list[list[fx.Node]]:
        pairs: dict[Any, list[fx.Node]] = {}
        for place, second in enumerate(self.calls):
            for first in self.calls[:place]:
                if first in second.all_input_nodes or {*first.all_input_nodes} & {*second.all_input_nodes}:
                    pairs.setdefault(
                        (kind(first, self.values), kind(second, self.values), first in second.all_input_nodes),
                        [first, second],
                    )
        groups = [[node] for node in distinct(self.calls, self.values)] + list(pairs.values())
        rounds = groups[:FEW], groups[FEW:MANY]
        return next((wrong for some in rounds if some and (wrong := self._side_by_side(some, fused=True))), [])

    def _side_by_side(self, groups: Sequence[list[fx.Node]], fused: bool) -> list[list[fx.Node]]:
        """Of these groups of nodes, all in one compile and none reading from another, those that are wrong."""
        graph = fx.Graph()
        inputs: list[Any] = []
        ends: list[tuple[list[fx.Node], fx.Node, Any]] = []
        for group in groups:
            if any(not self._tensors(node) for node in group):
                continue
            table: dict[fx.Node, Any] = {}
            for node in group:
                for source in node.all_input_nodes:
                    value = self.values[source]
                    if source not in table:
                        table[source] = (
                            graph.placeholder(f"x{len(inputs)}") if isinstance(value, torch.Tensor) else value
                        )
                        inputs += [value] if isinstance(value, torch.Tensor) else []
                table[node] = graph.node_copy(node, table.__getitem__)
            ends += [(group, node, table[node]) for node in group if not any(user in group for user in node.users)]
        graph.output(tuple(end for _, _, end in ends))
        try:
            got = self.compiled(fx.GraphModule(self.gm, graph), tuple(inputs), fused)
        except Exception:  # an op that does not compile hides the others: go on without the probe
            self.failed = True
            self.record("")
            return []
        wrong = [group for (group, node, _), value in zip(ends, got, strict=True) if differs(value, self.values[node])]
        self.record(f"{len(ends)} ops side by side{', fused' if fused else ''}: {len(wrong)} wrong")
        return wrong

    def _tensors(self, node: fx.Node) -> bool:
        """One tensor, computed from tensors."""
        read = any(isinstance(self.values.get(n), torch.Tensor) for n in node.all_input_nodes)
        return read and isinstance(self.values.get(node), torch.Tensor)


def distinct(calls: Sequence[fx.Node], values: dict[fx.Node, Any]) -> list[fx.Node]:
    """One node for each op and shapes."""
    found: dict[str, fx.Node] = {}
    for node in calls:
        found.setdefault(kind(node, values), node)
    return list(found.values())


def kind(node: fx.Node, values: dict[fx.Node, Any]) -> str:
    """The same for nodes that call the same op with the same shapes and constants."""
    shapes = [tuple(v.shape) for v in map(values.get, node.all_input_nodes) if isinstance(v, torch.Tensor)]
    constants = [a for a in node.args if not isinstance(a, fx.Node)]
    return f"{node.target}{shapes}{constants}{node.kwargs}"


def differs(got: Any, want: torch.Tensor) -> bool:
    """Is it another tensor than eager's?"""
    if not isinstance(got, torch.Tensor) or got.dtype != want.dtype or got.shape != want.shape:
        return True
    return any(True for _ in oracle.value_differences("", got.detach(), want))
