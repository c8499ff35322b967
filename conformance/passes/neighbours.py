"""Programs next to one that a pass matched: each differs in one thing, and must not match, or must still be right.

They are made from the graph that the pass was given, around the nodes of the match: an intermediate that is used elsewhere too, another
constant, another scale, a cast that moved, an input that is broadcast, a reduction over another dim, operands the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import fx

from conformance import oracle
from conformance.graphs import copied
from conformance.passes.compilation import End, compile_with
from conformance.passes.soundness import Finding, as_finding
from conformance.passes.subject import Subject

aten = torch.ops.aten


@dataclass
class Neighbour:
    """One program, how often the pass matched there, and what was wrong."""

    name: str
    matches: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.matches.values())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def neighbours(
    subject: Subject, gm: fx.GraphModule, matched: list[str], inputs: tuple[Any, ...]
) -> Iterator[Neighbour]:
    """The neighbours of one match, each compiled with the pass and held against eager."""
    for name, change in CHANGES.items():
        twin = copied(gm)
        nodes = [node for node in twin.graph.nodes if node.name in matched]
        if not nodes or not change(twin, nodes):
            continue
        twin.graph.lint()
        twin.recompile()
        program = Program(twin)
        reference = oracle.reference(program, inputs)
        if reference.eager.error is None:  # the change may not fit the sizes
            yield _judged(subject, name, program, inputs, reference)


def _judged(
    subject: Subject, name: str, program: torch.nn.Module, inputs: tuple[Any, ...], reference: oracle.Reference
) -> Neighbour:
    done = compile_with(subject, program, inputs, end=End.PASSES)
    assert done.outcome is not None
    differences = oracle.compare(done.outcome, reference, strides=False, aliases=False)
    found = [as_finding(each) for each in differences] if sum(done.matches.values()) else []
    return Neighbour(name, done.matches, found)


class Program(torch.nn.Module):
    """A graph as a module that Dynamo captures."""

    def __init__(self, gm: fx.GraphModule) -> None:
        super().__init__()
        self.graph_module = gm

    def forward(self, *inputs: Any) -> Any:
        return self.graph_module(*inputs)


# ------------------------------------------------------------------------------------------------- changes


def _intermediates(nodes: list[fx.Node]) -> list[fx.Node]:
    """Floating values inside the match that only the match uses."""
    inside = {*nodes}
    return [n for n in nodes if n.users and {*n.users} <= inside and _floating(n)]


def _floating(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _used_elsewhere(gm: fx.GraphModule, nodes: list[fx.Node]) -> bool:
    inside = _intermediates(nodes)
    if not inside:
        return False
    output = next(n for n in gm.graph.nodes if n.op == "output")
    returned = output.args[0]
    output.args = ((*(returned if isinstance(returned, (tuple, list)) else (returned,)), inside[-1]),)
    return True


def _other_constant(gm: fx.GraphModule, nodes: list[fx.Node]) -> bool:
    """A number such as eps, ten times as large."""
    for node in nodes:
        for index, value in enumerate(node.args):
            if type(value) is float and value != 0:
                node.update_arg(index, value * 10)
                return True
    return False


def _put_between(gm: fx.GraphModule, node: fx.Node, make: Callable[[fx.Node], fx.Node]) -> bool:
    """What used the node uses what `make` makes of it."""
    users = list(node.users)
    with gm.graph.inserting_after(node):
        last = make(node)
    for user in users:
        user.replace_input_with(node, last)
    return True


def _other_scale(gm: fx.GraphModule, nodes: list[fx.Node]) -> bool:
    inside = _intermediates(nodes)
    if not inside:
        return False
    return _put_between(gm, inside[-1], lambda n: gm.graph.call_function(aten.mul.Tensor, (n, 1.5)))


def _moved_cast(gm: fx.GraphModule, nodes: list[fx.Node]) -> bool:
    """A cast that came before an op comes after it."""
    for cast in nodes:
        users = list(cast.users)
        if (
            isinstance(cast.target, str)
            or "convert_element_type" not in str(cast.target)
            or len(users) != 1
            or users[0] not in nodes
        ):
            continue
        user, value = users[0], users[0].meta.get("val")
        if not isinstance(value, torch.Tensor) or not isinstance(cast.args[0], fx.Node) or "dtype" in user.kwargs:
            continue
        user.replace_input_with(cast, cast.args[0])
        after = list(user.users)
        with gm.graph.inserting_after(user):
            moved = gm.graph.call_function(cast.target, (user, value.dtype))
        for each in after:
            each.replace_input_with(user, moved)
        gm.graph.erase_node(cast)
        return True
    return False


def _broadcast(gm: fx.GraphModule, nodes: list[fx.Node]) -> bool:
    """An input of the match has one value along its last dim, expanded."""
    for node in nodes:
        for source in node.all_input_nodes:
            value = source.meta.get("val")
            if (
                source in nodes
                or not isinstance(value, torch.Tensor)
                or not value.dim()
                or not isinstance(value.shape[-1], int)
            ):
                continue
            if value.shape[-1] < 2 or not all(isinstance(size, int) for size in value.shape):
                continue
            with gm.graph.inserting_before(node):
                narrow = gm.graph.call_function(aten.slice.Tensor, (source, value.dim() - 1, 0, 1))
                wide = gm.graph.call_function(aten.expand.default, (narrow, list(value.shape)))
            for each in nodes:
                each.replace_input_with(source, wide)
            return _in_order(gm, wide, nodes)
    return False


def _in_order(gm: fx.GraphModule, made: fx.Node, nodes: list[fx.Node]) -> bool:
    """A user that comes before what was made cannot use it: then this change is not to be had."""
    order = {node: index for index, node in enumerate(gm.graph.nodes)}
    return all(order[user] > order[made] for user in made.users)


def _other_dim(gm: fx.GraphModule, nodes: list[fx.Node]) -> bool:
    for node in nodes:
        if len(node.args) > 1 and isinstance(node.args[1], (list, tuple)) and "view" not in str(node.target):
            value = node.args[0].meta.get("val") if isinstance(node.args[0], fx.Node) else None
            dims = node.args[1]
            if isinstance(value, torch.Tensor) and value.dim() > 1 and len(dims) == 1 and isinstance(dims[0], int):
                node.update_arg(1, [(dims[0] + 1) % value.dim()])
                return True
    return False


def _other_order(gm: fx.GraphModule, nodes: list[fx.Node]) -> bool:
    """Operands of an op that is not commutative, the other way round."""
    for node in nodes:
        if str(node.target) in ("aten.sub.Tensor", "aten.div.Tensor") and all(
            isinstance(a, fx.Node) for a in node.args
        ):
            node.args = (node.args[1], node.args[0])
            return True
    return False


CHANGES: dict[str, Callable[[fx.GraphModule, list[fx.Node]], bool]] = {
    "an intermediate is used elsewhere, too": _used_elsewhere,
    "another constant": _other_constant,
    "another scale": _other_scale,
    "a cast moved": _moved_cast,
    "an input is broadcast": _broadcast,
    "a reduction over another dim": _other_dim,
    "operands the other way round": _other_order,
}
