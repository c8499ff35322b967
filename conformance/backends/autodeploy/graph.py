"""Reading FX graphs: what they contain, how they look, whether every node still says what it makes."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from conformance.torch_seam import OpOverload, OpOverloadPacket, schema_of

SHORT = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "b8",
}


def copied(gm: fx.GraphModule) -> fx.GraphModule:
    """A graph that later passes cannot change; parameters and buffers are shared."""
    twin = fx.GraphModule(gm, copy.deepcopy(gm.graph))
    twin.meta = copy.deepcopy(gm.meta)
    if hasattr(gm, "range_constraints"):  # torch.export's, which transforms read
        twin.range_constraints = gm.range_constraints
    return twin


def op_name(target: Any) -> str:
    """`aten.add.Tensor`, `auto_deploy.torch_rmsnorm`, `getitem`."""
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        return str(target).removesuffix(".default")
    if target is operator.getitem:
        return "getitem"
    return getattr(target, "__name__", None) or str(target)


def packet_name(target: Any) -> str:
    """The op without its overload: `aten.add`."""
    return str(target.overloadpacket) if isinstance(target, OpOverload) else op_name(target)


def calls(gm: fx.GraphModule) -> list[fx.Node]:
    return [node for node in gm.graph.nodes if node.op in ("call_function", "call_method", "call_module")]


def op_counts(gm: fx.GraphModule) -> dict[str, int]:
    names = Counter(packet_name(node.target) for node in calls(gm))
    names.pop("getitem", None)
    return dict(sorted(names.items()))


def custom_ops(gm: fx.GraphModule) -> dict[str, int]:
    """The ops that are not PyTorch's own. A few of AutoDeploy's are plain functions around one."""
    plain = ("aten.", "prims.", "_operator")
    own = (OpOverload, OpOverloadPacket)
    names = Counter(
        packet_name(node.target)
        for node in calls(gm)
        if (isinstance(node.target, own) and not str(node.target).startswith(plain))
        or (not isinstance(node.target, own) and "auto_deploy" in str(getattr(node.target, "__module__", "")))
    )
    return dict(sorted(names.items()))


def mutating(gm: fx.GraphModule) -> dict[str, int]:
    """Ops that write into an argument."""
    names: Counter[str] = Counter()
    for node in calls(gm):
        if isinstance(node.target, OpOverload) and schema_of(node.target).is_mutable:
            names[packet_name(node.target)] += 1
    return dict(sorted(names.items()))


# ------------------------------------------------------------------------------------------------- listing


def shape_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{SHORT.get(value.dtype, str(value.dtype)[6:])}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(shape_of(item) for item in value)})"
    return type(value).__name__ if value is not None else "?"


def listing(gm: fx.GraphModule) -> str:
    """One line a node: `add: f32[2, 8] = aten.add.Tensor(x, y)`."""
    lines = []
    for node in gm.graph.nodes:
        known = shape_of(node.meta.get("val"))
        if node.op == "placeholder":
            lines.append(f"{node.name}: {known}")
        elif node.op == "get_attr":
            lines.append(f"{node.name}: {known} = self.{node.target}")
        elif node.op == "output":
            lines.append(f"return {_argument(node.args[0])}")
        else:
            arguments = [_argument(a) for a in node.args] + [f"{k}={_argument(v)}" for k, v in node.kwargs.items()]
            lines.append(f"{node.name}: {known} = {op_name(node.target)}({', '.join(arguments)})")
    return "\n".join(lines) + "\n"


def _argument(value: Any) -> str:
    if isinstance(value, fx.Node):
        return value.name
    if isinstance(value, (tuple, list)):
        inside = ", ".join(_argument(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_argument(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (OpOverload, OpOverloadPacket)):
        return op_name(value)
    return str(value).replace("torch.", "") if isinstance(value, torch.dtype) else repr(value)


# ------------------------------------------------------------------------------------------------ metadata


def without_metadata(nodes: Iterable[fx.Node]) -> list[str]:
    """The nodes that do not say the shape and dtype of what they make.

    A node that makes several tensors may leave that to the `getitem`s that take them out of it."""
    return [node.name for node in nodes if node.op not in ("output", "placeholder") and not _known(node)]


def _known(node: fx.Node) -> bool:
    value = node.meta.get("val")
    if value is not None:
        return True
    schema = schema_of(node.target)
    if schema is not None and not schema.returns:
        return True
    takers = [user for user in node.users if user.target is operator.getitem]
    return bool(takers) and len(takers) == len(node.users) and all(user.meta.get("val") is not None for user in takers)
