"""Random small graphs, well-typed by construction, as micrographs: every backend and every check takes them."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional as F

from conformance.fuzz import op_templates
from conformance.fuzz.graph import DIMS, DTYPES, INDEX, Graph, GraphInput, Line, Shape
from conformance.fuzz.search import Profile
from conformance.inputs import Tensor

OTHER = {"a": 9, "b": 6, "c": 4, "k": 3}  # a line must be right at these sizes as well, or its shape was misjudged
DRAWN = ("float32",) * 4 + DTYPES


class Builder:
    """Adds one well-typed line after the other. Each is tried in eager at two sets of sizes: what eager refuses, or
    what comes out in another shape than was thought, is left out."""

    def __init__(self, rng: random.Random, number: int = 0) -> None:
        self.rng, self.number, self.asked = rng, number, 0
        self.inputs: list[GraphInput] = []
        self.lines: list[Line] = []
        self.shapes: dict[str, Shape] = {}
        self.exact: set[str] = set()
        self.trials: tuple[dict[str, Any], ...] = ({"torch": torch, "F": F}, {"torch": torch, "F": F})
        self.wide = rng.random() < 0.5  # many lines beside one another, not one after the other
        for index in range(rng.randint(1, 3)):
            shape = tuple(rng.choice(("a", "b", "c", "a", "b")) for _ in range(rng.choice((1, 2, 2, 2, 3))))
            self._input(f"x{index}", shape, rng.choice(DRAWN))
        self.index = rng.random() < 0.4
        if self.index:
            self.inputs.append(GraphInput(INDEX, ("k",), "int64", "index:a"))
            for trial, dims in zip(self.trials, (DIMS, OTHER), strict=True):
                trial[INDEX] = torch.arange(dims["k"]) % dims["a"]

    def _input(self, name: str, shape: Shape, dtype: str) -> None:
        self.inputs.append(GraphInput(name, shape, dtype))
        self.shapes[name] = shape
        self.exact.add(name)
        for trial, dims in zip(self.trials, (DIMS, OTHER), strict=True):
            trial[name] = torch.ones(_sizes(shape, dims)).to(getattr(torch, dtype))

    # -------------------------------------------------------------------------------------- one line more

    def add(
        self, op: str, args: tuple[str, ...], shape: Shape | None, exact: bool = False, dim: int | None = None
    ) -> None:
        """`shape` None: as the first argument's. What comes out without dims has none."""
        name = f"v{len(self.lines)}"
        line = Line(name, op, args, dim if "{d}" in op else None)
        results = []
        for trial, dims in zip(self.trials, (DIMS, OTHER), strict=True):
            try:
                value = eval(line.text(), dict(trial))
            except Exception:
                return
            if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
                return
            if shape is None or not value.dim():
                shape = self.shapes[args[0]] if value.dim() else ()
            if tuple(value.shape) != _sizes(shape, dims):
                return
            results.append(value)
        for trial, value in zip(self.trials, results, strict=True):
            trial[name] = value
        dtype = results[0].dtype
        self.lines.append(replace(line, shape=shape or (), dtype=str(dtype)[6:]))
        self.shapes[name] = shape or ()
        if exact or not (dtype.is_floating_point or dtype.is_complex):
            self.exact.add(name)

    def kind(self, name: str) -> str:
        dtype = self.trials[0][name].dtype
        return (
            "complex"
            if dtype.is_complex
            else "float"
            if dtype.is_floating_point
            else "bool"
            if dtype is torch.bool
            else "int"
        )

    def pick(self, rank: int = 0, kind: str = "") -> str | None:
        names = [n for n, shape in self.shapes.items() if len(shape) >= rank and (not kind or self.kind(n) == kind)]
        if self.wide and self.rng.random() < 0.8:
            names = [n for n in names if n.startswith("x")] or names
        # Recent values are taken more often: chains are what fuses.
        return self.rng.choice(names[-4:] if self.rng.random() < 0.7 else names) if names else None

    def _choose(self, *tables: tuple[bool, tuple[str, ...], bool]) -> tuple[str, bool]:
        """A piece from those tables that may be used, and whether its result is exact."""
        able = [(table, exact) for allowed, table, exact in tables if allowed]
        table, exact = self.rng.choices(able, weights=[len(t) for t, _ in able])[0]
        self.asked += 1
        # Wide graphs go through the tables in order, so that after some hundred of them each piece has had its turn.
        return (table[(7 * self.number + self.asked) % len(table)] if self.wide else self.rng.choice(table)), exact

    def build(self, count: int) -> Graph:
        steps = [self.unary] * 6 + [self.binary] * 6 + [self.reduce] * 3 + [self.same_shape] * 3 + [self.window] * 3
        if not self.wide:
            steps += [self.view] * 5 + [self.cat] * 2 + [self.matmul] * 2 + [self.write] * 3
        steps += [self.indexed] * 2
        for _ in range(20 * count):
            if len(self.lines) < count:
                self.rng.choice(steps)()
        used = {arg for line in self.lines for arg in line.args}
        free = [line.name for line in self.lines if line.name and line.name not in used]
        named = [line.name for line in self.lines if line.name]
        outputs = (free if self.wide else free[-3:]) or named[-1:]
        extra = self.rng.choice([*named, *self.shapes])
        if self.rng.random() < 0.3 and extra not in outputs:
            outputs.append(extra)
        return Graph(tuple(self.inputs), tuple(self.lines), tuple(outputs) or (self.inputs[0].name,))

    # ----------------------------------------------------------------------------------------- elementwise

    def unary(self) -> None:
        if x := self.pick():
            kind, exact = self.kind(x), x in self.exact
            op, keeps = self._choose(
                (kind == "float", op_templates.SMOOTH, False),
                (kind == "float", op_templates.KEEPING, exact),
                (kind == "float" and exact, op_templates.STEPS, False),
                (kind == "int", op_templates.INTEGER, False),
                (kind == "bool", op_templates.BOOLEAN, False),
                (kind == "complex", op_templates.COMPLEX, False),
            )
            self.add(op, (x,), None, keeps)

    def binary(self) -> None:
        x = self.pick()
        if x is None:
            return
        y = self._broadcast(x)
        kinds, exact = {self.kind(x), self.kind(y)}, {x, y} <= self.exact
        if "complex" in kinds:
            return
        mixed = len(kinds) == 2
        op, keeps = self._choose(
            (kinds == {"float"}, op_templates.BINARY_SMOOTH, False),
            (kinds == {"float"}, op_templates.BINARY_KEEPING, exact),
            (kinds == {"float"} and exact, op_templates.BINARY_STEPS, False),
            (kinds == {"int"}, op_templates.BINARY_INTEGER, False),
            (kinds == {"bool"}, op_templates.BINARY_BOOLEAN, False),
            (mixed, op_templates.MIXED, False),
        )
        swapped = self.kind(x) != "float" if mixed else self.rng.random() < 0.5
        self.add(op, (y, x) if swapped else (x, y), self.shapes[x], keeps)

    def _broadcast(self, x: str) -> str:
        """A value that broadcasts to the shape of x and no further."""
        shape = self.shapes[x]

        def fits(other: Shape) -> bool:
            pairs = zip(other[::-1], shape[::-1], strict=False)
            return len(other) <= len(shape) and all(size in ("1", wanted) for size, wanted in pairs)

        return self.rng.choice([name for name, other in self.shapes.items() if fits(other)])

    # ------------------------------------------------------------------------------------------- dim by dim

    def same_shape(self) -> None:
        if x := self.pick(1):
            dim, exact = self.rng.randrange(len(self.shapes[x])), x in self.exact
            op, keeps = self._choose(
                (self.kind(x) == "float", op_templates.SAME_SHAPE, False), (True, op_templates.SAME_KEEPING, exact)
            )
            self.add(op, (x,), self.shapes[x], keeps, dim)

    def reduce(self) -> None:
        x = self.pick(1)
        if x is None or self.kind(x) == "complex":
            return
        shape, dim, exact = self.shapes[x], self.rng.randrange(len(self.shapes[x])), x in self.exact
        float_ = self.kind(x) == "float"
        op, keeps = self._choose(
            (float_, op_templates.REDUCE, False),
            (float_, op_templates.REDUCE_KEEPING, exact),
            (float_ and exact, op_templates.REDUCE_STEPS, False),
            (not float_, op_templates.REDUCE_INTEGER, False),
        )
        if self.rng.random() < 0.4 and "select" not in op:
            self.add(op_templates.keeping_dim(op), (x,), (*shape[:dim], "1", *shape[dim + 1 :]), keeps, dim)
        else:
            self.add(op, (x,), (*shape[:dim], *shape[dim + 1 :]), keeps, dim)

    def window(self) -> None:
        rank, op, size = self.rng.choice(op_templates.WINDOWS)
        x = self.pick(rank)
        if x is not None and (x in self.exact or not any(word in op for word in op_templates.STEPPED_WINDOWS)):
            shape = self.shapes[x]
            self.add(op, (x,), (*shape[:-1], size.replace("{n}", shape[-1])))

    # --------------------------------------------------------------------------------------------- structure

    def view(self) -> None:
        x = self.pick(1)
        if x is None:
            return
        shape, dim = self.shapes[x], self.rng.randrange(len(self.shapes[x]))
        before, size, after = shape[:dim], shape[dim], shape[dim + 1 :]
        views = op_templates.VIEWS
        options: list[tuple[str, Shape]] = [
            (views["unsqueeze"], (*before, "1", *shape[dim:])),
            (views["narrow"], (*before, f"{size}-1", *after)),
            (views["chunk"], (*before, f"({size}+1)/2", *after)),
            (views["movedim"], (size, *before, *after)),
            (views["reshape"], ("*".join(f"({s})" for s in shape),)),
            (views["unfold"], (*before, f"({size})-1", *after, "2")),
            (views["diag_embed"], (*before, shape[-1], *shape[dim:-1], shape[-1])),
        ]
        if dim == len(shape) - 1:
            options.append((views["step"], (*before, f"({size}+1)/2")))
        if len(shape) >= 2:
            options.append((views["transpose"], (*shape[:-2], shape[-1], shape[-2])))
            options.append((views["flatten"], (f"({shape[0]})*({shape[1]})", *shape[2:])))
        if size == "1":
            options.append((views["squeeze"], (*before, *after)))
            options.append((op_templates.EXPANDS[len(shape), dim], (*before, "3", *after)))
        op, result = self.rng.choice(options)
        self.add(op, (x,), result, x in self.exact, dim)

    def cat(self) -> None:
        x = self.pick(1)
        if x is None:
            return
        shape, dim = self.shapes[x], self.rng.randrange(len(self.shapes[x]))
        rest = (*shape[:dim], *shape[dim + 1 :])
        y = self.rng.choice(
            [n for n, s in self.shapes.items() if len(s) == len(shape) and (*s[:dim], *s[dim + 1 :]) == rest]
        )
        exact = {x, y} <= self.exact
        if self.rng.random() < 0.3 and self.shapes[y] == shape:
            self.add(op_templates.JOINED["stack"], (x, y), (*shape[:dim], "2", *shape[dim:]), exact, dim)
        else:
            total = f"({shape[dim]})+({self.shapes[y][dim]})"
            self.add(op_templates.JOINED["cat"], (x, y), (*shape[:dim], total, *shape[dim + 1 :]), exact, dim)

    def matmul(self) -> None:
        x = self.pick(2)
        if x is None:
            return
        shape = self.shapes[x]
        fits = [
            n for n, s in self.shapes.items() if len(s) == len(shape) and s[:-2] == shape[:-2] and s[-2] == shape[-1]
        ]
        if fits and self.rng.random() < 0.7:
            y = self.rng.choice(fits)
            self.add(op_templates.JOINED["matmul"], (x, y), (*shape[:-1], self.shapes[y][-1]))
        else:
            self.add(op_templates.JOINED["gram"], (x,), (*shape[:-1], shape[-2]))

    def write(self) -> None:
        x = self.pick(1)
        if x is None or (len(self.shapes[x]) < 2 and self.rng.random() < 0.5):
            return
        op, _ = self._choose(
            (True, op_templates.WRITES, True), (self.kind(x) == "float", op_templates.WRITES_SMOOTH, False)
        )
        args = (x, self._broadcast(x)) if "{1}" in op else (x,)
        if self.kind(x) != "float" and self.kind(args[-1]) == "float":
            return  # a cast to integers, perhaps of what is no integer
        line = Line("", op, args)
        for trial in self.trials:  # a write may fail half-way: what it wrote to is a trial's alone
            try:
                exec(line.text(), dict(trial))
            except Exception:
                return
        self.lines.append(line)
        # Whatever shares its storage is no longer exact either, and which values do is not known here.
        self.exact = {name for name in self.exact if self.kind(name) != "float"}

    def indexed(self) -> None:
        names = (
            [(n, d) for n, s in self.shapes.items() for d, size in enumerate(s) if size == "a"] if self.index else []
        )
        if not names:
            return
        x, dim = self.rng.choice(names)
        shape = self.shapes[x]
        part = (*shape[:dim], "k", *shape[dim + 1 :])
        select = op_templates.SELECTS
        options = [(select["index_select"], part), *((op, shape) for op in op_templates.INDEXED)]
        if dim == 0:
            pairs = len(shape) > 1 and shape[1] == "a"
            options += [
                (select["index"], part),
                (select["from_the_end"], part),
                (op_templates.INDEX_PUT, shape),
                (select["pairs"] if pairs else select["index"], part),
            ]
        if len(shape) == 1:
            options += [(op, shape) for op in op_templates.SCATTERS]
        op, result = self.rng.choice(options)
        self.add(op, (x,), result, dim=dim)


def _sizes(shape: Shape, dims: dict[str, int]) -> tuple[int, ...]:
    return Tensor(" ".join(shape)).sizes(dims)


def graph(number: int) -> Graph:
    """The graph of this number: always the same."""
    rng = random.Random(0xF022 + number)
    builder = Builder(rng, number)
    return builder.build(rng.randint(8, 14) if builder.wide else rng.randint(3, 9))


def signature(graph: Graph) -> frozenset[str]:
    """What a graph is made of: its lines without names, and the dtypes of its inputs."""
    lines = {re.sub(r"\d+", "#", re.sub(r"\b(x|v)\d+\b", "_", str(line))) for line in graph.lines}
    return frozenset(lines | {f"input {given.dtype}" for given in graph.inputs})


def budget(profile: Profile) -> Profile:
    """A graph is met once: few forms, for each costs a compile; and calls for about as long as the compiles took."""
    few = max(profile.forms // 2, 1)
    return replace(profile, forms=min(few, 3), examples=min(profile.examples, 30 * few), static=0)
