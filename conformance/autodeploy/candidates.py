"""Fusion candidates in graph dumps: what repeats unfused, which kernel already exists for it, and what to do.

A region is what one kernel could compute: element-wise ops, reductions and norms that touch, with no matmul, attention or
other opaque op on a way between two of them. Regions of one shape are one candidate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.autodeploy import checklist
from conformance.autodeploy.dumps import Folder, Graph, Node
from conformance.autodeploy.sources import Entry, search

ELEMENTWISE = {
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "silu",
    "gelu",
    "relu",
    "sigmoid",
    "tanh",
    "exp",
    "log",
    "rsqrt",
    "sqrt",
    "pow",
    "square",
    "abs",
    "where",
    "clamp",
    "clamp_min",
    "clamp_max",
    "maximum",
    "minimum",
    "masked_fill",
    "rsub",
    "reciprocal",
    "cos",
    "sin",
    "to",
    "_to_copy",
    "type_as",
    "float",
    "erf",
    "softplus",
    "sign",
}
REDUCTIONS = {
    "mean",
    "sum",
    "amax",
    "amin",
    "softmax",
    "_softmax",
    "var",
    "var_mean",
    "prod",
    "norm",
    "linalg_vector_norm",
}
SHAPES = {
    "slice",
    "cat",
    "narrow",
    "getitem",
    "unsqueeze",
    "squeeze",
    "expand",
    "view",
    "reshape",
    "transpose",
    "permute",
    "contiguous",
    "clone",
    "chunk",
    "split",
    "select",
    "flatten",
}
CASTS = {"to", "_to_copy", "type_as", "float", "contiguous", "clone"}
MATMULS = ("linear", "mm", "matmul", "gemm", "conv")
ATTENTION = ("attention", "sdpa", "scaled_dot")
NORMS = ("rms_norm", "rmsnorm", "layer_norm", "l2norm")


def short(node: Node) -> str:
    """`aten.add.Tensor` → add; `auto_deploy.torch_rmsnorm` → torch_rmsnorm."""
    return node.packet.split(".")[-1]


def fusible(node: Node) -> bool:
    name = short(node)
    return name in ELEMENTWISE or name in REDUCTIONS or any(norm in name for norm in NORMS)


@dataclass
class Region:
    file: str
    nodes: list[Node]
    signature: tuple[Any, ...]
    kind: str  # norm | attention | epilogue | elementwise
    escapes: int  # values of it that are used outside

    @property
    def ops(self) -> list[str]:
        return [short(node) for node in self.nodes]


@dataclass
class Candidate:
    name: str
    kind: str
    pattern: str
    count: int
    lookup: str  # found | not_found
    evidence: list[str]
    recommendation: str  # use_existing_kernel | needs_triton_fallback | defer
    strengths: list[str]
    risks: list[str]
    where: list[str]
    score: float = 0.0
    transforms: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The template in which such candidates are discussed."""
        lines = [
            f"Candidate: {self.name}",
            f"Affected graph pattern: {self.pattern} ({self.kind}, {self.count} times; {self.where[0]})",
            f"Existing kernel lookup: {self.lookup}",
            f"Evidence: {'; '.join(self.evidence) or 'none'}",
            f"Recommendation: {self.recommendation}",
            "Strengths / weaknesses / risks:",
            *(f"- + {text}" for text in self.strengths),
            *(f"- ! {text}" for text in self.risks),
        ]
        return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------- regions


def regions(graph: Graph, file: str) -> list[Region]:
    level = _levels(graph)
    inside = {name for name, node in graph.nodes.items() if fusible(node)}
    inside |= {name for name, node in graph.nodes.items() if short(node) in SHAPES and _between(graph, node, inside)}
    groups = _connected(graph, inside, level)
    found = []
    for names in groups:
        nodes = [node for name, node in graph.nodes.items() if name in names]
        if sum(fusible(node) and short(node) not in CASTS for node in nodes) >= 2:
            found.append(Region(file, nodes, _signature(nodes), _kind(graph, nodes), _escapes(graph, nodes)))
    return found


def _levels(graph: Graph) -> dict[str, int]:
    """How many opaque ops are on the longest way to a node: nodes of two levels cannot be in one kernel."""
    level: dict[str, int] = {}
    for name, node in graph.nodes.items():
        level[name] = 0
        for before in node.inputs:
            if before in level:
                source = graph.nodes[before]
                opaque = bool(source.op) and not fusible(source) and short(source) not in SHAPES
                level[name] = max(level[name], level[before] + opaque)
    return level


def _between(graph: Graph, node: Node, inside: set[str]) -> bool:
    return any(name in inside for name in node.inputs) and any(name in inside for name in node.users)


def _connected(graph: Graph, inside: set[str], level: dict[str, int]) -> list[set[str]]:
    parent = {name: name for name in inside}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    ordered = [name for name in graph.nodes if name in inside]
    for name in ordered:
        for before in graph.nodes[name].inputs:
            if before in inside and level[before] == level[name]:
                parent[root(name)] = root(before)
    groups: dict[str, set[str]] = defaultdict(set)
    for name in ordered:
        groups[root(name)].add(name)
    return list(groups.values())


def _signature(nodes: list[Node]) -> tuple[Any, ...]:
    """The same for regions that compute the same, whatever their names and sizes are."""
    index = {node.name: i for i, node in enumerate(nodes)}
    return tuple((node.op, *(index.get(name, "in") for name in node.inputs)) for node in nodes)


def _kind(graph: Graph, nodes: list[Node]) -> str:
    names = {short(node) for node in nodes}
    if any(norm in name for name in names for norm in NORMS) or (
        names & {"mean", "var", "var_mean"} and names & {"rsqrt", "sqrt"}
    ):
        return "norm"
    if "softmax" in names or "_softmax" in names or {"neg", "cat"} <= names or _near(graph, nodes, ATTENTION):
        return "attention"
    if any(_is(graph.nodes.get(name), MATMULS) for node in nodes for name in node.inputs):
        return "epilogue"
    return "elementwise"


def _is(node: Node | None, kinds: tuple[str, ...]) -> bool:
    return node is not None and bool(node.op) and any(kind in short(node) for kind in kinds)


def _near(graph: Graph, nodes: list[Node], kinds: tuple[str, ...]) -> bool:
    """Does the region touch such an op, views in between aside?"""
    names = {node.name for node in nodes}
    for node in nodes:
        around = [n for n in (*node.inputs, *node.users) if n in graph.nodes and n not in names]
        for other in around:
            further = (
                [*graph.nodes[other].users, *graph.nodes[other].inputs] if short(graph.nodes[other]) in SHAPES else []
            )
            if any(_is(graph.nodes.get(name), kinds) for name in (other, *further)):
                return True
    return False


def _escapes(graph: Graph, nodes: list[Node]) -> int:
    names = {node.name for node in nodes}
    return sum(node.name in graph.outputs or any(user not in names for user in node.users) for node in nodes)


# -------------------------------------------------------------------------------------------------- lookup


@dataclass(frozen=True)
class Known:
    """A region that has a name, and the words by which kernels for it are called."""

    name: str
    is_it: Callable[[Counter[str]], bool]
    words: tuple[tuple[str, ...], ...]


def _has(*names: str) -> Callable[[Counter[str]], bool]:
    return lambda ops: all(ops[name] for name in names)


def _norm_op(ops: Counter[str]) -> bool:
    return any("rms" in name and "norm" in name for name in ops)


def _rms(ops: Counter[str]) -> bool:
    return bool((ops["pow"] or ops["square"]) and ops["mean"] and ops["rsqrt"] and not ops["sub"])


KNOWN = (
    Known(
        "add_rmsnorm",
        lambda ops: bool(ops["add"] and _norm_op(ops)) or (ops["add"] >= 2 and _rms(ops)),
        (("fuse", "add", "rmsnorm"),),
    ),
    Known("rmsnorm", lambda ops: _rms(ops) or _norm_op(ops), (("rmsnorm",),)),
    Known(
        "layernorm",
        lambda ops: bool(ops["sub"] and ops["mean"] and ops["rsqrt"]) or bool(ops["layer_norm"]),
        (("layernorm",),),
    ),
    Known("l2norm", lambda ops: bool(ops["sum"] and (ops["rsqrt"] or ops["sqrt"])), (("l2norm",),)),
    Known("rope", _has("neg", "cat", "mul", "add"), (("rope",),)),
    Known("softmax_attention", lambda ops: bool(ops["softmax"] or ops["_softmax"]), (("attention",),)),
    Known("silu_mul", _has("silu", "mul"), (("siluandmul",), ("swiglu",))),
    Known("gelu_mul", _has("gelu", "mul"), (("gelu", "mul"), ("geglu",))),
    Known("relu_squared", lambda ops: bool(ops["relu"] and (ops["square"] or ops["pow"] or ops["mul"])), (("relu2",),)),
)
QUANTIZED = ("quant", "fp8", "nvfp4", "mxfp4", "int4")


def named(region: Region) -> tuple[str, tuple[tuple[str, ...], ...]]:
    ops = Counter(region.ops)
    for known in KNOWN:
        if known.is_it(ops):
            return known.name, known.words
    telling = [op for op in dict.fromkeys(region.ops) if op not in CASTS]
    special = tuple(op for op in telling if op not in ("add", "mul", "sub", "div"))
    return "_".join(telling[:4]), ((special,) if len(special) >= 2 else ())


# --------------------------------------------------------------------------------------------------- ranking


def find(folder: Folder, root: Path | None) -> list[Candidate]:
    """The candidates of the last graph that was written, best first. `root` is the checkout to look for kernels in."""
    dump = folder.last
    groups: dict[tuple[Any, ...], list[Region]] = defaultdict(list)
    for graph in dump.graphs:
        for region in regions(graph, dump.file.name):
            groups[region.signature].append(region)
    ran = [d.transform for d in folder.dumps]
    found = [judge(group, root, ran) for group in groups.values()]
    order = ("use_existing_kernel", "needs_triton_fallback", "defer")
    return sorted(found, key=lambda c: (order.index(c.recommendation), -c.score, c.name, c.pattern))


def judge(group: list[Region], root: Path | None, ran: list[str]) -> Candidate:
    region = group[0]
    name, words = named(region)
    entries = [e for w in words for e in search(root, w, QUANTIZED)] if root else []
    kernels = [e for e in entries if e.kind == "custom op" and e.name.split("::")[-1] not in region.ops]
    transforms = [e for e in entries if e.kind == "transform"]
    lookup = "found" if kernels else "not_found"
    described = all(node.described for node in region.nodes)
    size = sum(fusible(node) and short(node) not in CASTS for node in region.nodes)
    candidate = Candidate(
        name=name,
        kind=region.kind,
        pattern=" → ".join(region.ops),
        count=len(group),
        lookup=lookup,
        evidence=[str(e) for e in (*kernels[:3], *transforms[:2])],
        recommendation=recommend(lookup, root, described, size, len(group), region),
        strengths=strengths(group, size, kernels, transforms),
        risks=risks(region, root, described, transforms, ran),
        where=[f"{r.file}: {r.nodes[0].name} … {r.nodes[-1].name}" for r in group],
        transforms=[e.name for e in transforms],
    )
    weight = {"use_existing_kernel": 2.0, "needs_triton_fallback": 1.0, "defer": 0.25}[candidate.recommendation]
    candidate.score = round(weight * len(group) * (size - 1) / (1 + 0.25 * len(candidate.risks)), 2)
    return candidate


def recommend(lookup: str, root: Path | None, described: bool, size: int, count: int, region: Region) -> str:
    if lookup == "found":
        return "use_existing_kernel"
    unsure = root is None or not described or region.escapes > 2
    return "needs_triton_fallback" if not unsure and size >= 3 and count >= 2 else "defer"


def strengths(group: list[Region], size: int, kernels: list[Entry], transforms: list[Entry]) -> list[str]:
    said = [f"{size} ops become one, {len(group)} {'times' if len(group) > 1 else 'time'} in this graph"]
    if kernels:
        said.append(f"kernels for it exist: {', '.join(dict.fromkeys(e.name for e in kernels[:3]))}")
    if transforms:
        said.append(f"transforms to extend or to turn on: {', '.join(dict.fromkeys(e.name for e in transforms[:3]))}")
    return said


def risks(region: Region, root: Path | None, described: bool, transforms: list[Entry], ran: list[str]) -> list[str]:
    said = []
    if root is None:
        said.append("no checkout to look for kernels in: set TRTLLM_SRC")
    for entry in transforms:
        if entry.name in ran:
            said.append(f"{entry.name} ran and left it: see whether its pattern or missing metadata is the reason")
        elif root is not None and not ran_by_default(entry.name, root):
            said.append(f"{entry.name} is off by default")
    if not described:
        said.append("some shapes or dtypes are missing in the dump: one more dump after shape propagation")
    if region.escapes > 1:
        said.append(f"{region.escapes} of its values are used outside: they must stay available")
    if any(short(node) in REDUCTIONS for node in region.nodes) and any("16" in node.dtype for node in region.nodes):
        said.append("a reduction in 16 bits: the order of sums changes the result")
    return said[:6]


def ran_by_default(name: str, root: Path) -> bool:
    return checklist._listed(name, root).evidence.endswith("on by default")
