"""Micrographs of the library as straight-line programs: inputs, statements of torch alone, outputs.

Which ones can be written so is kept in `fixtures/seeds.txt`, since to trace all of them takes a minute;
`python -m conformance.fuzz.grammars.seeds` writes it anew."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import fx

from conformance import paths
from conformance.library import load
from conformance.micrograph import Micrograph

MOST = 24  # statements
LITERAL = 64  # elements of an integer input that are written out
ELEMENTS = 4096  # of one input, at most
# Random ops have no one answer; nor has what calls code of the library.
LEFT_OUT = re.compile(
    r"rand|empty|dropout|bernoulli|normal_|uniform_|torch\.ops\.(?!aten)|conformance|quantiz|_scaled|flex_"
)
FLOATS = re.compile(r"torch\.(bfloat16|float16)")  # their rounding is not promised: seeds compute in float32


@dataclass(frozen=True)
class Seed:
    """inputs      name → text that makes it; the module's own parameters and buffers are among them
    statements  `name = expression`
    outputs     expressions
    """

    inputs: dict[str, str]
    statements: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def first(self) -> str:
        return next(iter(self.inputs))

    @property
    def last(self) -> str:
        return [*self.inputs][-1]


class Flat(fx.Tracer):
    """Traces into every module, so that only functions and methods of tensors are left."""

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        return False


@cache
def seeds() -> tuple[str, ...]:
    """The names of micrographs that have a straight-line text."""
    return tuple(name for name in paths.seeds().read_text().split() if name in library())


def has_text(name: str) -> bool:
    """With this version of torch, too?"""
    return _seed(name) is not None


@cache
def library() -> dict[str, type[Micrograph]]:
    return {name: cls for name, cls in load().items() if not cls.has_scenario() and cls.steps == 1 and cls.inputs}


def seed(name: str) -> Seed:
    found = _seed(name)
    if found is None:
        raise KeyError(name)
    return found


@cache
def _seed(name: str) -> Seed | None:
    """The micrograph as text; None where it cannot be traced, or holds what has no one answer."""
    cls = library().get(name)
    if cls is None:
        return None
    try:
        module = cls.build().eval()
        graph = Flat().trace(module)
        made = _of(module, graph, cls.example())
    except Exception:  # control flow, other than tensors, code that fx does not trace
        return None
    return made if made and _runs(made) else None


def _of(module: torch.nn.Module, graph: fx.Graph, example: tuple[Any, ...]) -> Seed | None:
    given = iter(example)
    inputs: dict[str, str] = {}
    statements: list[str] = []
    outputs: list[str] = []
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs[node.name] = _made(next(given), len(inputs))
        elif node.op == "get_attr":
            value = module.get_parameter(node.target) if node.target in dict(module.named_parameters()) else None
            inputs[node.name] = _made(module.get_buffer(node.target) if value is None else value, len(inputs))
        elif node.op == "output":
            flat = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
            outputs = [str(item) for item in flat if isinstance(item, fx.Node)]
    code = fx.GraphModule(module, graph).code
    for line in code.splitlines():
        statement = line.strip().split(";  ")[0]
        name, equals, expression = statement.partition(" = ")
        if equals and name.isidentifier() and name not in inputs:
            statements.append(FLOATS.sub("torch.float32", f"{name} = {expression}"))
    text = "\n".join(statements)
    fits = 0 < len(statements) <= MOST and outputs and inputs and "self." not in text
    return Seed(inputs, tuple(statements), tuple(outputs)) if fits and not LEFT_OUT.search(text) else None


def _made(value: Any, at: int) -> str:
    """Text that makes an input: floats by a formula, integers as they are."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    shape, dtype = tuple(value.shape), value.dtype
    if value.numel() > ELEMENTS:
        raise ValueError("too large")
    if dtype.is_floating_point:
        return f"numbers({shape}, {'torch.float64' if dtype == torch.float64 else 'torch.float32'}, {at})"
    if dtype == torch.bool:
        return f"numbers({shape}, torch.float32, {at}) > 0"
    if value.numel() > LITERAL or dtype.is_complex:
        raise ValueError("not written out")
    return f"torch.tensor({value.flatten().tolist()}, dtype={dtype}).view({shape})"


NUMBERS = """
import torch
import torch.nn.functional as F
from operator import setitem as _operator_setitem
from torch import device, inf, nan
def numbers(shape, dtype, at):
    return torch.arange(torch.Size(shape).numel()).float().view(shape).to(dtype)
"""


def _runs(made: Seed) -> bool:
    """Does eager run the statements as they stand?"""
    lines = [f"{name} = {text}" for name, text in made.inputs.items()]
    try:
        with torch.no_grad():
            exec("\n".join([NUMBERS, *lines, *made.statements]), {})
    except Exception:
        return False
    return True


if __name__ == "__main__":
    paths.seeds().write_text("".join(f"{name}\n" for name in library() if has_text(name)))
