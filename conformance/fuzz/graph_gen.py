"""Random small graphs, well-typed by construction, written out as micrographs: every backend and every check takes them."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional as F

from conformance.backends.base import Backend
from conformance.errors import UsageError
from conformance.fuzz import op_templates
from conformance.fuzz.example import Call, Example, generated
from conformance.fuzz.known import Register
from conformance.fuzz.runner import Rejected, Served, Tally, runner_for
from conformance.fuzz.search import Profile, Suspect
from conformance.fuzz.strategies import plain
from conformance.fuzz.watchdog import Hung, limited
from conformance.inputs import Tensor
from conformance.target import Target
from conformance.verdict import Kind

Shape = tuple[str, ...]  # sizes as they are written: "a", "a+b", "2*a"; equal text is equal size
DIMS = {"a": 5, "b": 7, "c": 11, "k": 4}
OTHER = {"a": 9, "b": 6, "c": 4, "k": 3}  # a line must be right at these sizes as well, or its shape was misjudged
DTYPES = ("float32",) * 5 + ("bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")


@dataclass(frozen=True)
class Line:
    """`name = code`, or only `code` where it writes."""

    name: str
    code: str  # with {0}, {1} … for the arguments
    args: tuple[str, ...]
    shape: Shape = ()
    dtype: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.text()}" if self.name else self.text()

    def text(self) -> str:
        return self.code.format(*self.args)


@dataclass(frozen=True)
class Program:
    inputs: tuple[tuple[str, Shape, str], ...]  # name, shape, the rest of the spec
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]

    def source(self) -> str:
        specs = "\n".join(f'        Tensor("{" ".join(shape)}"{rest}),' for _, shape, rest in self.inputs)
        body = "\n".join(f"        {line}" for line in self.lines)
        used = {d: s for d, s in DIMS.items() if any(re.search(rf"\b{d}\b", " ".join(sh) + rest) for _, sh, rest in self.inputs)}
        text = (
            "import torch\nfrom torch.nn import functional as F\n\n"
            "from conformance.micrograph import Contract, Micrograph, Tensor\n\n\n"
            'class NAME(Micrograph):\n    """A graph made up by the fuzzer."""\n\n'
            f"    dims = {used!r}\n    inputs = (\n{specs}\n    )\n    contract = Contract()\n\n"
            f"    def forward(self, {', '.join(name for name, _, _ in self.inputs)}):\n{body}\n"
            f"        return {', '.join(self.outputs)}{',' if len(self.outputs) == 1 else ''}\n"
        )
        return text.replace("NAME", f"Graph{hashlib.sha256(text.encode()).hexdigest()[:6]}")

    def type_of(self, name: str) -> tuple[Shape, str] | None:
        for other, shape, rest in self.inputs:
            if other == name:
                return (shape, _dtype_in(rest)) if "fill" not in rest else None
        return next(((line.shape, line.dtype) for line in self.lines if line.name == name), None)


def _dtype_in(rest: str) -> str:
    found = re.search(r"torch\.(\w+)", rest)
    return found[1] if found else "float32"


class Builder:
    """Adds one well-typed line after the other. Each is tried in eager at two sets of sizes: what eager refuses, or what comes
    out in another shape than was thought, is left out."""

    def __init__(self, rng: random.Random, number: int = 0) -> None:
        self.rng, self.number, self.asked = rng, number, 0
        self.inputs: list[tuple[str, Shape, str]] = []
        self.lines: list[Line] = []
        self.shapes: dict[str, Shape] = {}
        self.exact: set[str] = set()
        self.trials: tuple[dict[str, Any], ...] = ({"torch": torch, "F": F}, {"torch": torch, "F": F})
        self.wide = rng.random() < 0.5  # many lines beside one another, not one after the other
        for index in range(rng.randint(1, 3)):
            shape = tuple(rng.choice(("a", "b", "c", "a", "b")) for _ in range(rng.choice((1, 2, 2, 2, 3))))
            self._input(f"x{index}", shape, rng.choice(DTYPES))
        self.index = rng.random() < 0.4
        if self.index:
            self.inputs.append(("at", ("k",), ', torch.int64, fill="index:a"'))
            for trial, dims in zip(self.trials, (DIMS, OTHER), strict=True):
                trial["at"] = torch.arange(dims["k"]) % dims["a"]

    def _input(self, name: str, shape: Shape, dtype: str) -> None:
        self.inputs.append((name, shape, f", torch.{dtype}" if dtype != "float32" else ""))
        self.shapes[name] = shape
        self.exact.add(name)
        for trial, dims in zip(self.trials, (DIMS, OTHER), strict=True):
            trial[name] = torch.ones(_sizes(shape, dims)).to(getattr(torch, dtype))

    # -------------------------------------------------------------------------------------- one line more

    def add(self, code: str, args: tuple[str, ...], shape: Shape | None, exact: bool = False) -> None:
        """`shape` None: as the first argument's. What comes out without dims has none."""
        name = f"v{len(self.lines)}"
        results = []
        for trial, dims in zip(self.trials, (DIMS, OTHER), strict=True):
            try:
                value = eval(code.format(*args), dict(trial))
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
        self.lines.append(Line(name, code, args, shape or (), str(dtype)[6:]))
        self.shapes[name] = shape or ()
        if exact or not (dtype.is_floating_point or dtype.is_complex):
            self.exact.add(name)

    def kind(self, name: str) -> str:
        dtype = self.trials[0][name].dtype
        return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "bool" if dtype is torch.bool else "int"

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

    def build(self, count: int) -> Program:
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
        return Program(tuple(self.inputs), tuple(self.lines), tuple(outputs) or (self.inputs[0][0],))

    # ----------------------------------------------------------------------------------------- elementwise

    def unary(self) -> None:
        if x := self.pick():
            kind, exact = self.kind(x), x in self.exact
            code, keeps = self._choose(
                (kind == "float", op_templates.SMOOTH, False),
                (kind == "float", op_templates.KEEPING, exact),
                (kind == "float" and exact, op_templates.STEPS, False),
                (kind == "int", op_templates.INTEGER, False),
                (kind == "bool", op_templates.BOOLEAN, False),
                (kind == "complex", ("{0}.abs()", "{0} * {0}", "{0}.conj()", "torch.view_as_real({0})[..., 0]"), False),
            )
            self.add(code, (x,), None, keeps)

    def binary(self) -> None:
        x = self.pick()
        if x is None:
            return
        y = self._broadcast(x)
        kinds, exact = {self.kind(x), self.kind(y)}, {x, y} <= self.exact
        if "complex" in kinds:
            return
        mixed = len(kinds) == 2
        code, keeps = self._choose(
            (kinds == {"float"}, op_templates.BINARY_SMOOTH, False),
            (kinds == {"float"}, op_templates.BINARY_KEEPING, exact),
            (kinds == {"float"} and exact, op_templates.BINARY_STEPS, False),
            (kinds == {"int"}, op_templates.BINARY_INTEGER, False),
            (kinds == {"bool"}, op_templates.BINARY_BOOLEAN, False),
            (mixed, op_templates.MIXED, False),
        )
        swapped = self.kind(x) != "float" if mixed else self.rng.random() < 0.5
        self.add(code, (y, x) if swapped else (x, y), self.shapes[x], keeps)

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
            code, keeps = self._choose((self.kind(x) == "float", op_templates.SAME_SHAPE, False), (True, op_templates.SAME_KEEPING, exact))
            self.add(code.replace("{d}", str(dim)), (x,), self.shapes[x], keeps)

    def reduce(self) -> None:
        x = self.pick(1)
        if x is None or self.kind(x) == "complex":
            return
        shape, dim, exact = self.shapes[x], self.rng.randrange(len(self.shapes[x])), x in self.exact
        float_ = self.kind(x) == "float"
        code, keeps = self._choose(
            (float_, op_templates.REDUCE, False),
            (float_, op_templates.REDUCE_KEEPING, exact),
            (float_ and exact, op_templates.REDUCE_STEPS, False),
            (not float_, op_templates.REDUCE_INTEGER, False),
        )
        code = code.replace("{d}", str(dim))
        if self.rng.random() < 0.4 and "select" not in code:
            self.add(f"({code}).unsqueeze({dim})", (x,), (*shape[:dim], "1", *shape[dim + 1 :]), keeps)
        else:
            self.add(code, (x,), (*shape[:dim], *shape[dim + 1 :]), keeps)

    def window(self) -> None:
        rank, code, size = self.rng.choice(op_templates.WINDOWS)
        x = self.pick(rank)
        if x is not None and (x in self.exact or not any(word in code for word in op_templates.STEPPED_WINDOWS)):
            shape = self.shapes[x]
            self.add(code, (x,), (*shape[:-1], size.replace("{n}", shape[-1])))

    # --------------------------------------------------------------------------------------------- structure

    def view(self) -> None:
        x = self.pick(1)
        if x is None:
            return
        shape, dim = self.shapes[x], self.rng.randrange(len(self.shapes[x]))
        before, size, after = shape[:dim], shape[dim], shape[dim + 1 :]
        options: list[tuple[str, Shape]] = [
            (f"{{0}}.unsqueeze({dim})", (*before, "1", *shape[dim:])),
            (f"{{0}}.narrow({dim}, 1, {{0}}.shape[{dim}] - 1)", (*before, f"{size}-1", *after)),
            (f"{{0}}.chunk(2, dim={dim})[0]", (*before, f"({size}+1)/2", *after)),
            (f"{{0}}.movedim({dim}, 0)", (size, *before, *after)),
            ("{0}.reshape(-1)", ("*".join(f"({s})" for s in shape),)),
            (f"{{0}}.unfold({dim}, 2, 1)", (*before, f"({size})-1", *after, "2")),
            (f"torch.diag_embed({{0}}, dim1={dim}, dim2=-1)", (*before, shape[-1], *shape[dim:-1], shape[-1])),
        ]
        if dim == len(shape) - 1:
            options.append(("{0}[..., ::2]", (*before, f"({size}+1)/2")))
        if len(shape) >= 2:
            options.append(("{0}.transpose(-1, -2)", (*shape[:-2], shape[-1], shape[-2])))
            options.append(("{0}.flatten(0, 1)", (f"({shape[0]})*({shape[1]})", *shape[2:])))
        if size == "1":
            options.append((f"{{0}}.squeeze({dim})", (*before, *after)))
            options.append((f"{{0}}.expand({', '.join('3' if i == dim else '-1' for i in range(len(shape)))})", (*before, "3", *after)))
        code, result = self.rng.choice(options)
        self.add(code, (x,), result, x in self.exact)

    def cat(self) -> None:
        x = self.pick(1)
        if x is None:
            return
        shape, dim = self.shapes[x], self.rng.randrange(len(self.shapes[x]))
        rest = (*shape[:dim], *shape[dim + 1 :])
        y = self.rng.choice([n for n, s in self.shapes.items() if len(s) == len(shape) and (*s[:dim], *s[dim + 1 :]) == rest])
        exact = {x, y} <= self.exact
        if self.rng.random() < 0.3 and self.shapes[y] == shape:
            self.add(f"torch.stack(({{0}}, {{1}}), dim={dim})", (x, y), (*shape[:dim], "2", *shape[dim:]), exact)
        else:
            total = f"({shape[dim]})+({self.shapes[y][dim]})"
            self.add(f"torch.cat(({{0}}, {{1}}), dim={dim})", (x, y), (*shape[:dim], total, *shape[dim + 1 :]), exact)

    def matmul(self) -> None:
        x = self.pick(2)
        if x is None:
            return
        shape = self.shapes[x]
        fits = [n for n, s in self.shapes.items() if len(s) == len(shape) and s[:-2] == shape[:-2] and s[-2] == shape[-1]]
        if fits and self.rng.random() < 0.7:
            y = self.rng.choice(fits)
            self.add("{0} @ {1}", (x, y), (*shape[:-1], self.shapes[y][-1]))
        else:
            self.add("{0} @ {0}.transpose(-1, -2)", (x,), (*shape[:-1], shape[-2]))

    def write(self) -> None:
        x = self.pick(1)
        if x is None or (len(self.shapes[x]) < 2 and self.rng.random() < 0.5):
            return
        code, _ = self._choose((True, op_templates.WRITES, True), (self.kind(x) == "float", op_templates.WRITES_SMOOTH, False))
        args = (x, self._broadcast(x)) if "{1}" in code else (x,)
        if self.kind(x) != "float" and self.kind(args[-1]) == "float":
            return  # a cast to integers, perhaps of what is no integer
        for trial in self.trials:  # a write may fail half-way: what it wrote to is a trial's alone
            try:
                exec(code.format(*args), dict(trial))
            except Exception:
                return
        self.lines.append(Line("", code, args))
        # Whatever shares its storage is no longer exact either, and which values do is not known here.
        self.exact = {name for name in self.exact if self.kind(name) != "float"}

    def indexed(self) -> None:
        names = [(n, d) for n, s in self.shapes.items() for d, size in enumerate(s) if size == "a"] if self.index else []
        if not names:
            return
        x, dim = self.rng.choice(names)
        shape = self.shapes[x]
        part = (*shape[:dim], "k", *shape[dim + 1 :])
        options = [
            (f"torch.index_select({{0}}, {dim}, at)", part),
            (f"{{0}}.index_fill({dim}, at, 1)", shape),
            (f"torch.zeros_like({{0}}).index_add({dim}, at, {{0}}.index_select({dim}, at))", shape),
            (f"{{0}}.index_reduce({dim}, at, {{0}}.index_select({dim}, at), 'amax')", shape),
            (f"{{0}}.index_reduce({dim}, at, {{0}}.index_select({dim}, at), 'mean', include_self=False)", shape),
        ]
        if dim == 0:
            options += [
                ("{0}[at]", part),
                ("{0}[-1 - at]", part),
                ("torch.index_put({0}, (at,), {0}[at] * 2, accumulate=True)", shape),
                ("{0}[at.unsqueeze(-1), at]" if len(shape) > 1 and shape[1] == "a" else "{0}[at]", part),
            ]
        if len(shape) == 1:
            options += [
                ("{0}.scatter_reduce(0, at, {0}[at], 'amin')", shape),
                ("{0}.scatter_reduce(0, at, {0}[at], 'sum', include_self=False)", shape),
                ("{0}.scatter_add(0, at, {0}[at])", shape),
                ("{0}.scatter_reduce(0, at, {0}[at].clamp(-1, 1), 'prod')", shape),
            ]
        code, result = self.rng.choice(options)
        self.add(code, (x,), result)


def _sizes(shape: Shape, dims: dict[str, int]) -> tuple[int, ...]:
    return Tensor(" ".join(shape)).sizes(dims)


_made: dict[str, Program] = {}


def program(number: int) -> Program:
    rng = random.Random(0xF022 + number)
    builder = Builder(rng, number)
    return builder.build(rng.randint(8, 14) if builder.wide else rng.randint(3, 9))


def source(number: int) -> str:
    made = program(number)
    text = made.source()
    _made[text] = made
    return text


def signature(text: str) -> frozenset[str]:
    """What a graph is made of: its lines without names, and the dtypes of its inputs."""
    body = text.split("def forward", 1)[1].splitlines()[1:-1] if "def forward" in text else []
    lines = {re.sub(r"\d+", "#", re.sub(r"\b(x|v)\d+\b", "_", line.strip())) for line in body}
    return frozenset(lines | {f"input {dtype}" for dtype in re.findall(r'Tensor\("[^"]*"(?:, torch\.(\w+))?', text)})


def budget(profile: Profile) -> Profile:
    """A graph is met once: few forms, for each costs a compile; and calls for about as long as the compiles took."""
    few = max(profile.forms // 2, 1)
    return replace(profile, forms=min(few, 3), examples=min(profile.examples, 30 * few), static=0)


# ------------------------------------------------------------------------------------------------ smaller


def smaller(
    suspect: Suspect,
    text: str,
    backend: Backend,
    target: Target,
    seconds: float = 150.0,
    patience: float = 0.0,
    register: Register | None = None,
) -> Suspect:
    """Leave out lines, outputs and inputs for as long as the last call still goes wrong in the same way."""
    if text not in _made:
        return suspect
    best, example, until = _made[text], suspect.example, time.monotonic() + seconds
    moved = True
    while moved and time.monotonic() < until:
        moved = False
        for trial, calls in _trials(best, example.calls):
            if time.monotonic() > until:
                break
            candidate = replace(example, calls=calls, source=trial.source())
            candidate = replace(candidate, micrograph=generated(candidate.source).name())
            if fails(candidate, suspect, backend, target, patience, register):
                best, example, moved = trial, candidate, True
                break
    return Suspect(replace(example, dynamic=tuple(d for d in example.dynamic if d in example.base().dims)), suspect.differences)


def fails(
    example: Example, suspect: Suspect, backend: Backend, target: Target, patience: float = 0.0, register: Register | None = None
) -> bool:
    """Does its last call go wrong as the suspect's does, and not for a reason that is known?"""
    runner = runner_for(backend, target, example.base(), Tally(), example.source, register)
    try:
        with limited(patience):
            if not isinstance(runner, Served):
                found = runner.run(replace(plain(runner.micrograph), dynamic=False), example.calls[-1])
                return bool(found) and found[0].kind is suspect.kind and not runner.known(example.calls[-1], found)
            end = runner.replay(list(example.calls), example.dynamic, example.unbacked)
            same = end == len(example.calls) - 1 and runner.last[0].kind is suspect.kind
            return same and not runner.known(example.calls[-1], runner.last)
    except (Rejected, UsageError):
        return False
    except Hung:
        return suspect.kind is Kind.TIMEOUT
    finally:
        runner.close()


def _trials(program: Program, calls: tuple[Call, ...]) -> Iterator[tuple[Program, tuple[Call, ...]]]:
    for output in program.outputs if len(program.outputs) > 1 else ():  # most often one is enough
        yield _tidy(replace(program, outputs=(output,)), calls)
    for output in program.outputs:
        if len(program.outputs) > 2:
            yield _tidy(replace(program, outputs=tuple(o for o in program.outputs if o != output)), calls)
    for line in reversed(program.lines):
        rest = replace(program, lines=tuple(other for other in program.lines if other is not line))
        if not line.name:
            yield _tidy(rest, calls)
            continue
        inputs = [name for name, _, _ in program.inputs]
        for name in [*inputs, *(other.name for other in program.lines[: program.lines.index(line)] if other.name)]:
            if program.type_of(name) == (line.shape, line.dtype):
                yield _tidy(_renamed(rest, line.name, name), calls)
        if gone := _without(program, line):
            yield _tidy(gone, calls)


def _renamed(program: Program, old: str, new: str) -> Program:
    swap = lambda names: tuple(new if name == old else name for name in names)
    outputs = tuple(dict.fromkeys(swap(program.outputs)))
    return replace(program, lines=tuple(replace(line, args=swap(line.args)) for line in program.lines), outputs=outputs)


def _without(program: Program, gone: Line) -> Program | None:
    """Without a line and all that needs it."""
    names, lines = {gone.name}, []
    for line in program.lines:
        if line is gone or names & {*line.args}:
            names |= {line.name} - {""}
        else:
            lines.append(line)
    outputs = tuple(o for o in program.outputs if o not in names)
    return Program(program.inputs, tuple(lines), outputs) if outputs and lines else None


def _tidy(program: Program, calls: tuple[Call, ...]) -> tuple[Program, tuple[Call, ...]]:
    """Without lines that nothing uses, and inputs that no line does."""
    lines = list(program.lines)
    while True:
        used = {*program.outputs} | {arg for line in lines for arg in line.args}
        kept = [line for line in lines if not line.name or line.name in used]
        if len(kept) == len(lines):
            break
        lines = kept
    text = " ".join(line.text() for line in lines)
    keep = [i for i, (name, _, _) in enumerate(program.inputs) if name in program.outputs or re.search(rf"\b{name}\b", text)] or [0]
    if any(g.shares is not None for call in calls for g in call.given):
        keep = list(range(len(program.inputs)))  # an input may be there for another's sake
    made = Program(tuple(program.inputs[i] for i in keep), tuple(lines), program.outputs)
    return made, tuple(_fewer(call, keep) for call in calls)


def _fewer(call: Call, keep: list[int]) -> Call:
    return replace(call, given=tuple(call.given[i] for i in keep))
