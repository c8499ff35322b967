"""What is wrong with a graph that a pass has left: it raised, ran on, broke the graph, lost a write, lost metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import fx

from conformance.backends.inductor.seam import seam as inductor
from conformance.errors import first_line
from conformance.graphs import copied, op_name
from conformance.passes.application import Application, apply
from conformance.passes.form import shown
from conformance.passes.subject import Subject
from conformance.torch_seam import OpOverload, pytree, schema_of


@dataclass(frozen=True)
class Finding:
    """kind    raised, timeout, broken_graph, lost_write, write_order, metadata_loss, wrong_metadata, not_idempotent, or a kind of the
    oracle's (wrong_result, numeric_drift, …); `stack_trace` is a note and fails nothing
    detail  one line
    """

    kind: str
    detail: str

    @property
    def serious(self) -> bool:
        return self.kind != "stack_trace"

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def findings(subject: Subject, done: Application) -> list[Finding]:
    """What one application of a pass did wrong: one finding for one cause."""
    if done.timed_out:
        return [Finding("timeout", str(done.error))]
    if done.error is not None:
        return [Finding("raised", first_line(done.error))]
    if done.broken or done.after is None:
        return [Finding("broken_graph", done.broken)]
    found = [*lost_writes(done.before, done.after), *_metadata(done.before, done.after)]
    return [*found, *_again(subject, done)]


# ------------------------------------------------------------------------------------------------- writes


def written_inputs(gm: fx.GraphModule) -> list[str]:
    """The inputs that the graph writes to, in order, once for every write; through views too."""
    return [
        root.name for node in gm.graph.nodes for value in _written(node) if (root := _root(value)).op == "placeholder"
    ]


def _written(node: fx.Node) -> Iterator[fx.Node]:
    target = node.target
    if not isinstance(target, OpOverload) or not schema_of(target).is_mutable:
        return
    for index, argument in enumerate(schema_of(target).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
            yield from (v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, fx.Node))


def _root(node: fx.Node) -> fx.Node:
    """What a chain of views is a view of."""
    while isinstance(node.target, OpOverload):
        views = [i for i, argument in enumerate(schema_of(node.target).arguments) if argument.alias_info is not None]
        if not views or views[0] >= len(node.args):
            break
        base = node.args[views[0]]
        if not isinstance(base, fx.Node):
            break
        node = base
    return node


def lost_writes(before: fx.GraphModule, after: fx.GraphModule) -> Iterator[Finding]:
    """A write into an input that is gone, or writes that come in another order."""
    old, new = written_inputs(before), written_inputs(after)
    lost = Counter(old) - Counter(new)
    for name in lost:
        if name not in new:
            yield Finding("lost_write", f"the write into {name} is gone")
            return
    kept = [name for name in dict.fromkeys(old) if name in new]
    order = [name for name in dict.fromkeys(new) if name in kept]
    if kept != order:
        yield Finding("write_order", f"writes were in the order {', '.join(kept)} and are now {', '.join(order)}")


# ---------------------------------------------------------------------------------------------- metadata


def _metadata(before: fx.GraphModule, after: fx.GraphModule) -> Iterator[Finding]:
    known = {node.name for node in before.graph.nodes}
    fresh = [n for n in after.graph.nodes if n.op == "call_function" and n.name not in known]
    computing = [n for n in fresh if not isinstance(n.target, OpOverload) or schema_of(n.target).returns]
    bare = [n for n in computing if "val" not in n.meta and "example_value" not in n.meta]
    if bare:
        more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
        yield Finding(
            "metadata_loss", f"{bare[0].name} = {op_name(bare[0].target)} has no `val`: no shape, dtype or stride{more}"
        )
        return
    wrong = next((said for node in computing if (said := wrong_value(node))), "")
    if wrong:
        yield Finding("wrong_metadata", wrong)
    traced = any(node.stack_trace for node in before.graph.nodes)
    blank = [node.name for node in fresh if not node.stack_trace]
    if traced and blank:
        yield Finding("stack_trace", f"no stack trace on {', '.join(blank[:3])}{' …' if len(blank) > 3 else ''}")


def wrong_value(node: fx.Node) -> str:
    """How the `val` of a node differs from what its op makes of the values of its arguments; empty where it does not."""
    if not isinstance(node.target, OpOverload):
        return ""
    claimed = node.meta.get("val")
    try:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        mode = inductor.detect_fake_mode([*pytree.tree_leaves((args, kwargs)), claimed])
        if mode is None:
            return ""
        with mode:
            made = node.target(*args, **kwargs)
    except Exception:  # an op without a fake implementation, a symbol of another graph: nothing can be said
        return ""
    for got, want in zip(pytree.tree_leaves(claimed), pytree.tree_leaves(made), strict=False):
        if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor):
            for name in ("dtype", "shape", "stride"):
                one, other = _told(got, name), _told(want, name)
                if one != other:
                    said = f"says {name} {one}, its op makes {other}"
                    return f"{node.name} = {op_name(node.target)} {said}"
    return ""


def _told(value: torch.Tensor, name: str) -> str:
    if name == "dtype":
        return str(value.dtype).removeprefix("torch.")
    sizes = value.shape if name == "shape" else value.stride()
    return shown(tuple(x if isinstance(x, int) else str(x) for x in sizes))


# ------------------------------------------------------------------------------------------- idempotence


def _again(subject: Subject, done: Application) -> Iterator[Finding]:
    """Applied to what it has left, a pass should find nothing."""
    assert done.after is not None
    if not done.total:
        return
    again = apply(subject, copied(done.after), done.role)
    if again.error is not None:
        yield Finding("not_idempotent", f"applied to its own result it raises {first_line(again.error)}")
    elif again.total:
        named = ", ".join(f"{name} × {count}" for name, count in again.matches.items() if count)
        yield Finding("not_idempotent", f"applied to its own result it matches again: {named}")


def as_finding(difference: Any) -> Finding:
    """A difference from eager."""
    return Finding(difference.kind.value, str(difference))
