"""A generated graph as data: inputs, lines that each name an op of the tables, outputs.

Its source text is made from the tables, so that a graph read from a file says which ops run, and never brings code.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.errors import UsageError
from conformance.fuzz import op_templates
from conformance.fuzz.home import home
from conformance.library import load
from conformance.micrograph import Micrograph

Shape = tuple[str, ...]  # sizes as they are written: "a", "a+b", "2*a"; equal text is equal size
DIMS = {"a": 5, "b": 7, "c": 11, "k": 4}
DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
FILLS = ("", "index:a")
INDEX = "at"  # the input that ops of `op_templates.INDEXED` take their indices from
MAX_LINES = 200
MAX_RANK = 12
_INPUT, _VALUE = re.compile(r"x\d{1,3}|at"), re.compile(r"v\d{1,3}")
_SIZE, _DTYPE = re.compile(r"[abck0-9+*/()-]+"), re.compile(r"[a-z0-9_]{0,20}")


@dataclass(frozen=True)
class GraphInput:
    name: str
    shape: Shape
    dtype: str = "float32"
    fill: str = ""

    def spec(self) -> str:
        """The text of its input spec."""
        dtype = f", torch.{self.dtype}" if self.dtype != "float32" else ""
        return f'Tensor("{" ".join(self.shape)}"{dtype}' + (f', fill="{self.fill}")' if self.fill else ")")

    def problem(self) -> str:
        """What is wrong with it; empty if nothing is."""
        checks = {
            f"the input name {self.name!r} is not x0, x1 … or {INDEX}": _INPUT.fullmatch(self.name),
            f"the dtype {self.dtype!r} is not one of {', '.join(DTYPES)}": self.dtype in DTYPES,
            f"the fill {self.fill!r} is not known": self.fill in FILLS,
            f"the shape of {self.name} has other sizes than {', '.join(DIMS)}": {*self.shape} <= {*DIMS},
            f"the shape of {self.name} has more than {MAX_RANK} dims": len(self.shape) <= MAX_RANK,
        }
        return next((text for text, fine in checks.items() if not fine), "")


@dataclass(frozen=True)
class Line:
    """`name = op(args)`; a line that writes has no name."""

    name: str
    op: str  # a template of op_templates, with {0}, {1} … for the arguments and {d} for the dim
    args: tuple[str, ...]
    dim: int | None = None
    shape: Shape = ()
    dtype: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.text()}" if self.name else self.text()

    def text(self) -> str:
        return self.op.replace("{d}", str(self.dim)).format(*self.args)

    def problem(self, defined: set[str]) -> str:
        """What is wrong with it, where these names are defined; empty if nothing is."""
        if self.op not in op_templates.KNOWN:
            return f"the op {self.op[:80]!r} is not one that this suite generates"
        taken = {int(number) for number in re.findall(r"{(\d)}", self.op)}
        used = {*self.args} | ({INDEX} if re.search(rf"\b{INDEX}\b", self.op) else set())
        checks = {
            f"the value name {self.name!r} is not v0, v1 …": not self.name or _VALUE.fullmatch(self.name),
            f"{self.name} is defined twice": self.name not in defined,
            f"{self.op!r} is a write, which has no name, or the other way round": (self.op in op_templates.WRITTEN)
            == (not self.name),
            f"{self.op!r} takes {len(taken)} arguments, not {len(self.args)}": len(taken) == len(self.args),
            f"{self.op!r} takes {'a' if '{d}' in self.op else 'no'} dim": ("{d}" in self.op) == (self.dim is not None),
            f"the dim {self.dim} is not one of {MAX_RANK}": self.dim is None or 0 <= self.dim < MAX_RANK,
            f"the shape of {self.name} is not made of sizes": all(_SIZE.fullmatch(size) for size in self.shape),
            f"{self.dtype!r} is not a dtype": _DTYPE.fullmatch(self.dtype),
            f"{self.op!r} takes {sorted(used - defined)}, which no line before it defines": used <= defined,
        }
        return next((text for text, fine in checks.items() if not fine), "")


@dataclass(frozen=True)
class Graph:
    inputs: tuple[GraphInput, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]

    def source(self) -> str:
        """The micrograph of this graph, as text: from the tables' own templates and from names that `check` allows."""
        specs = "\n".join(f"        {given.spec()}," for given in self.inputs)
        body = "\n".join(f"        {line}" for line in self.lines)
        named = {word for given in self.inputs for word in re.findall(r"\b[abck]\b", given.spec())}
        dims = {dim: size for dim, size in DIMS.items() if dim in named}
        text = (
            "import torch\nfrom torch.nn import functional as F\n\n"
            "from conformance.micrograph import Contract, Micrograph, Tensor\n\n\n"
            'class NAME(Micrograph):\n    """A graph made up by the fuzzer."""\n\n'
            f"    dims = {dims!r}\n    inputs = (\n{specs}\n    )\n"
            "    contract = Contract()\n\n"
            f"    def forward(self, {', '.join(given.name for given in self.inputs)}):\n{body}\n"
            f"        return {', '.join(self.outputs)}{',' if len(self.outputs) == 1 else ''}\n"
        )
        return with_name(text, "Graph")

    def type_of(self, name: str) -> tuple[Shape, str] | None:
        """The shape and dtype of a value; None for indices."""
        for given in self.inputs:
            if given.name == name:
                return None if given.fill else (given.shape, given.dtype)
        return next(((line.shape, line.dtype) for line in self.lines if line.name == name), None)

    def check(self) -> None:
        """Refuse a graph with anything in it that the generator does not make."""
        if problem := self._problem():
            raise UsageError(f"not a graph of this suite: {problem}")

    def _problem(self) -> str:
        if not 0 < len(self.inputs) <= MAX_RANK or len(self.lines) > MAX_LINES or not self.outputs:
            return f"it has {len(self.inputs)} inputs, {len(self.lines)} lines and {len(self.outputs)} outputs"
        defined: set[str] = set()
        for given in self.inputs:
            if problem := given.problem() or ("an input is defined twice" if given.name in defined else ""):
                return problem
            defined.add(given.name)
        for line in self.lines:
            if problem := line.problem(defined):
                return problem
            defined |= {line.name} - {""}
        missing = sorted({*self.outputs} - defined)
        return f"no line defines the output {missing[0][:40]!r}" if missing else ""


@cache
def micrograph_of(graph: Graph) -> type[Micrograph]:
    """The micrograph of a graph."""
    graph.check()
    return keep(graph.source())


def with_name(text: str, kind: str) -> str:
    """The text of a micrograph with a name in place of NAME, which is the same for the same text."""
    return text.replace("NAME", f"{kind}{hashlib.sha256(text.encode()).hexdigest()[:6]}")


def keep(source: str) -> type[Micrograph]:
    """The micrograph of a text, which is kept in a file, since a class must be found again by its file."""
    folder = home() / "graphs"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"generated_{hashlib.sha256(source.encode()).hexdigest()[:10]}.py"
    if not _holds(file, source):
        handle, unfinished = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(source)
        os.replace(unfinished, file)
    return next(iter(load(file).values()))


def _holds(file: Path, text: str) -> bool:
    try:
        return not file.is_symlink() and file.is_file() and file.read_bytes() == text.encode()
    except OSError:
        return False
