"""Reads what `AD_DUMP_GRAPHS_DIR` makes AutoDeploy write: one file a transform, one line a node.

    %add : 2x8x64 : torch.bfloat16                                        an input
    %mul = aten.mul.Tensor(%add : 2x8x64 : torch.bfloat16, 2) : 2x8x64 : torch.bfloat16
    output %mul

Weights are not written as nodes, nor are keyword arguments. A run that was killed leaves a last file that ends in the
middle of a line: what can be read of it is left out, and said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import UsageError

NAME = re.compile(r"(\d+)_(.+)\.txt")
STAGES = (
    "factory",
    "export",
    "post_export",
    "pattern_matcher",
    "sharding",
    "weight_load",
    "post_load_fusion",
    "cache_init",
    "visualize",
    "compile",
)
INPUT = re.compile(r"%(\S+) : (\S+) : (\S+)$")
CALL = re.compile(r"%(\S+) = (.+?)\((.*)\) : (\(.*\)|\S+) : (\(.*\)|\S+)$")
OUTPUT = re.compile(r"output (.*)$")
VALUE = re.compile(r"%([\w.]+)")
FUNCTION = re.compile(r"<(?:built-in )?function (\w+)(?: at 0x[0-9a-f]+)?>")


@dataclass
class Node:
    name: str
    op: str  # "aten.add.Tensor", "getitem", …; "" for an input
    inputs: list[str]
    shape: str
    dtype: str
    users: list[str] = field(default_factory=list)

    @property
    def packet(self) -> str:
        """The op without its overload: `aten.add`."""
        parts = self.op.split(".")
        return ".".join(parts[:2]) if len(parts) > 2 else self.op

    @property
    def described(self) -> bool:
        return self.shape != "?" and self.dtype not in ("N/A", "unknown")


@dataclass
class Graph:
    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)


@dataclass
class Dump:
    """The graphs after one transform."""

    file: Path
    number: int
    stage: str
    transform: str
    graphs: list[Graph]


@dataclass
class Folder:
    path: Path
    dumps: list[Dump]
    broken: list[str]  # "012_….txt: ends in the middle of line 40"

    @property
    def last(self) -> Dump:
        return self.dumps[-1]


class HalfWritten(Exception):
    pass


def read_folder(path: Path) -> Folder:
    if not path.is_dir():
        raise UsageError(f"no folder of graph dumps at {path}: run AutoDeploy with AD_DUMP_GRAPHS_DIR={path}")
    files = sorted((int(found[1]), file) for file in path.iterdir() if (found := NAME.fullmatch(file.name)))
    if not files:
        raise UsageError(f"no graph dumps in {path}: expected files such as 001_export_export_to_gm.txt")
    dumps, broken = [], []
    for number, file in files:
        try:
            dumps.append(read(file, number))
        except HalfWritten as error:
            broken.append(f"{file.name}: {error}")
    if not dumps:
        raise UsageError(f"no graph dump in {path} can be read: {broken[0]}")
    return Folder(path, dumps, broken)


def read(file: Path, number: int = 0) -> Dump:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise HalfWritten(f"cannot be read: {error}") from None
    stage, transform = _names(file)
    graphs: list[Graph] = []
    complete = False
    promised = re.search(r"^# GraphModules found: (\d+)$", text, re.MULTILINE)
    for index, line in enumerate(text.splitlines(), 1):
        line = line.rstrip()
        if line.startswith("# GraphModule: "):
            graphs.append(Graph(line.removeprefix("# GraphModule: ")))
            complete = False
        elif line and not line.startswith(("#", "=")):
            if not graphs:
                raise HalfWritten(f"line {index} stands before any graph")
            complete = _line(graphs[-1], line, index)
    if not promised or not complete or len(graphs) != int(promised[1]):
        raise HalfWritten("it ends before its last graph does")
    for graph in graphs:
        _link(graph)
    return Dump(file, number, stage, transform, graphs)


def _names(file: Path) -> tuple[str, str]:
    rest = NAME.fullmatch(file.name)
    name = rest[2] if rest else file.stem
    stage = max((s for s in STAGES if name.startswith(s + "_")), key=len, default="")
    return stage, name.removeprefix(stage + "_") if stage else name


def _line(graph: Graph, line: str, index: int) -> bool:
    """Adds one node; True for the output line, which is the last of a graph."""
    if found := OUTPUT.match(line):
        graph.outputs = VALUE.findall(found[1])
        return True
    if found := CALL.match(line):
        graph.nodes[found[1]] = Node(found[1], _op(found[2]), _inputs(found[3], graph), found[4], found[5])
    elif found := INPUT.match(line):
        graph.nodes[found[1]] = Node(found[1], "", [], found[2], found[3])
    else:
        raise HalfWritten(f"ends in the middle of line {index}: {line[:60]!r}")
    return False


def _inputs(text: str, graph: Graph) -> list[str]:
    """Values are written `%name`, but bare inside lists: `[name, other]`."""
    found = []
    for value, listed in re.findall(r"%([\w.]+)|\[([^\]]*)\]", text):
        found += [value] if value else [name for name in re.findall(r"[\w.]+", listed) if name in graph.nodes]
    return found


def _op(text: str) -> str:
    found = FUNCTION.match(text)
    return found[1] if found else text.removesuffix(".default")


def _link(graph: Graph) -> None:
    for node in graph.nodes.values():
        for name in dict.fromkeys(node.inputs):
            if name in graph.nodes:
                graph.nodes[name].users.append(node.name)
