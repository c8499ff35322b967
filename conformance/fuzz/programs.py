"""Random small graphs, well-typed by construction, written out as micrographs: every backend and every check takes them."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformance.backends.base import Backend
from conformance.errors import UsageError
from conformance.fuzz.example import Call, Example, generated
from conformance.fuzz.runner import Rejected, Served, Tally, runner_for
from conformance.fuzz.search import Profile, Suspect
from conformance.target import Target

Shape = tuple[str, ...]  # sizes as they are written: "a", "a+b", "2*a"; equal text is equal size
DIMS = {"a": 5, "b": 7, "c": 11, "k": 4}

UNARY = """
torch.sin({0}) | torch.tanh({0}) | torch.sigmoid({0}) | F.relu({0}) | torch.abs({0}) | -{0} | {0} * 1.5 | {0} + 0.25 | F.gelu({0}) |
torch.exp({0}.clamp(-3.0, 3.0)) | F.silu({0}) | torch.sqrt({0}.abs() + 0.1) | {0}.square() | torch.rsqrt({0}.abs() + 0.5) |
torch.where({0} > 0, {0}, 0.1 * {0}) | torch.clamp({0}, -0.5, 0.5) | {0}.to(torch.float64).cos().to(torch.float32) | torch.erf({0}) |
torch.log1p({0}.abs()) | torch.atan({0}) | F.softplus({0}) | F.elu({0}) | {0}.clone() | {0} * {0}.shape[-1] |
torch.full_like({0}, 0.5) + {0} |
F.hardswish({0}) | torch.expm1({0}.clamp(max=2.0)) | F.logsigmoid({0}) | {0} * torch.arange({0}.shape[-1]) | torch.nan_to_num({0}) |
{0}.abs().pow(1.5) | 1.0 / ({0}.square() + 1.0) | torch.tril({0}) | torch.triu({0}, 1) | {0}.contiguous() | torch.ones_like({0}) - {0}
"""
BINARY = """
{0} + {1} | {0} * {1} | {0} - {1} | torch.maximum({0}, {1}) | torch.minimum({0}, {1}) | {0} / ({1}.abs() + 1.0) |
torch.lerp({0}, {1}, 0.3) |
torch.hypot({0}, {1}) | torch.atan2({0}, {1}.abs() + 1.0) | torch.addcmul({0}, {0}, {1}, value=0.5) | torch.where({0} > {1}, {0}, {1}) |
torch.copysign({0}, {1}.abs() + 1.0) | torch.add({0}, {1}, alpha=2)
"""
SAME_SHAPE = """
torch.softmax({0}, dim={d}) | torch.log_softmax({0}, dim={d}) | torch.cumsum({0}, dim={d}) | torch.flip({0}, ({d},)) |
torch.roll({0}, 1, {d}) | {0} - {0}.mean(dim={d}, keepdim=True) | F.layer_norm({0}, {0}.shape[-1:]) | F.normalize({0}, dim={d}) |
{0} / ({0}.abs().amax(dim={d}, keepdim=True) + 1.0) | torch.cat(({0}[1:], {0}[:1])) | torch.cumprod(torch.tanh({0}), dim={d})
"""
REDUCE = """
{0}.sum(dim={d}) | {0}.mean(dim={d}) | {0}.amax(dim={d}) | {0}.amin(dim={d}) | torch.logsumexp({0}, dim={d}) |
{0}.var(dim={d}, unbiased=False) |
torch.linalg.vector_norm({0}, dim={d}) | {0}.select({d}, 0) | {0}.select({d}, -1) | torch.tanh({0}).prod(dim={d}) |
{0}.diff(dim={d}).sum(dim={d})
"""
WRITES = """
{0}.add_({1}) | {0}.mul_({1}) | {0}.copy_({1}) | {0}[1:].mul_(2.0) | {0}[..., ::2].add_(1.0) | {0}.mul_(0.5) | {0}.clamp_(min=0.0) |
{0}.transpose(0, -1).sub_(0.5) | {0}.fill_(0.75) | {0}[..., 0] = 0.25 | {0}[..., -1] += 1.0 | {0}.tanh_() | {0}.zero_().add_({1}) |
{0}.sub_({1}, alpha=2) | {0}.diagonal(dim1=0, dim2=-1).fill_(3.0) | {0}.view(-1)[1:].neg_() | {0}.unsqueeze(0).add_(1.0)
"""


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", " ").split("|")]


@dataclass(frozen=True)
class Line:
    """`name = code`, or only `code` where it writes."""

    name: str
    code: str  # with {0}, {1} … for the arguments
    args: tuple[str, ...]
    shape: Shape = ()

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

    def shape_of(self, name: str) -> Shape | None:
        for other, shape, rest in self.inputs:
            if other == name:
                return shape if not rest else None
        return next((line.shape for line in self.lines if line.name == name), None)


class Builder:
    """Adds one well-typed line after the other."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.inputs: list[tuple[str, Shape, str]] = []
        self.lines: list[Line] = []
        self.shapes: dict[str, Shape] = {}
        for index in range(rng.randint(1, 3)):
            shape = tuple(rng.choice(("a", "b", "c", "a", "b")) for _ in range(rng.choice((1, 2, 2, 2, 3))))
            self._input(f"x{index}", shape)
        self.index = rng.random() < 0.4
        if self.index:
            self.inputs.append(("at", ("k",), ', torch.int64, fill="index:a"'))

    def _input(self, name: str, shape: Shape) -> None:
        self.inputs.append((name, shape, ""))
        self.shapes[name] = shape

    def add(self, code: str, args: tuple[str, ...], shape: Shape) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(Line(name, code, args, shape))
        self.shapes[name] = shape

    def pick(self, rank: int = 0) -> str | None:
        names = [name for name, shape in self.shapes.items() if len(shape) >= rank]
        # Recent values are taken more often: chains are what fuses.
        return self.rng.choice(names[-4:] if self.rng.random() < 0.7 else names) if names else None

    def build(self, count: int) -> Program:
        steps = [self.unary] * 4 + [self.binary] * 5 + [self.reduce] * 3 + [self.same_shape] * 3 + [self.view] * 5
        steps += [self.cat] * 2 + [self.matmul] * 2 + [self.write] * 3 + [self.indexed] * 2 + [self.pad]
        while len(self.lines) < count:
            self.rng.choice(steps)()
        used = {arg for line in self.lines for arg in line.args}
        free = [line.name for line in self.lines if line.name and line.name not in used]
        named = [line.name for line in self.lines if line.name]
        outputs = free[-3:] or named[-1:]
        extra = self.rng.choice([*named, *self.shapes])
        if self.rng.random() < 0.3 and extra not in outputs:
            outputs.append(extra)
        return Program(tuple(self.inputs), tuple(self.lines), tuple(outputs) or (self.inputs[0][0],))

    def unary(self) -> None:
        if x := self.pick(1):
            code = self.rng.choice(UNARIES)
            if ("tril" not in code and "triu" not in code) or len(self.shapes[x]) >= 2:
                self.add(code, (x,), self.shapes[x])

    def binary(self) -> None:
        x = self.pick(1)
        if x is None:
            return
        partner = self._broadcast(x)
        self.add(self.rng.choice(BINARIES), (x, partner) if self.rng.random() < 0.5 else (partner, x), self.shapes[x])

    def _broadcast(self, x: str) -> str:
        """A value that broadcasts to the shape of x and no further."""
        shape = self.shapes[x]

        def fits(other: Shape) -> bool:
            pairs = zip(other[::-1], shape[::-1], strict=False)
            return len(other) <= len(shape) and all(size in ("1", wanted) for size, wanted in pairs)

        return self.rng.choice([name for name, other in self.shapes.items() if fits(other)])

    def same_shape(self) -> None:
        if x := self.pick(1):
            dim = self.rng.randrange(len(self.shapes[x]))
            self.add(self.rng.choice(SAMES).replace("{d}", str(dim)), (x,), self.shapes[x])

    def reduce(self) -> None:
        if x := self.pick(1):
            shape, dim = self.shapes[x], self.rng.randrange(len(self.shapes[x]))
            code = self.rng.choice(REDUCTIONS).replace("{d}", str(dim))
            if self.rng.random() < 0.4 and "select" not in code:
                self.add(f"({code}).unsqueeze({dim})", (x,), (*shape[:dim], "1", *shape[dim + 1 :]))
            else:
                self.add(code, (x,), (*shape[:dim], *shape[dim + 1 :]))

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
        self.add(code, (x,), result)

    def cat(self) -> None:
        x = self.pick(1)
        if x is None:
            return
        shape, dim = self.shapes[x], self.rng.randrange(len(self.shapes[x]))
        rest = (*shape[:dim], *shape[dim + 1 :])
        y = self.rng.choice([n for n, s in self.shapes.items() if len(s) == len(shape) and (*s[:dim], *s[dim + 1 :]) == rest])
        if self.rng.random() < 0.3 and self.shapes[y] == shape:
            self.add(f"torch.stack(({{0}}, {{1}}), dim={dim})", (x, y), (*shape[:dim], "2", *shape[dim:]))
        else:
            total = f"({shape[dim]})+({self.shapes[y][dim]})"
            self.add(f"torch.cat(({{0}}, {{1}}), dim={dim})", (x, y), (*shape[:dim], total, *shape[dim + 1 :]))

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
        code = self.rng.choice(WRITING)
        if "diagonal" in code and len(self.shapes[x]) < 2:
            return
        args = (x, self._broadcast(x)) if "{1}" in code else (x,)
        self.lines.append(Line("", code, args))

    def indexed(self) -> None:
        names = [(n, d) for n, s in self.shapes.items() for d, size in enumerate(s) if size == "a"] if self.index else []
        if not names:
            return
        x, dim = self.rng.choice(names)
        shape = self.shapes[x]
        part = (*shape[:dim], "k", *shape[dim + 1 :])
        options = [
            (f"torch.index_select({{0}}, {dim}, at)", part),
            (f"{{0}}.index_fill({dim}, at, 0.5)", shape),
            (f"torch.zeros_like({{0}}).index_add({dim}, at, {{0}}.index_select({dim}, at))", shape),
        ]
        if dim == 0:
            options += [("{0}[at]", part), ("torch.index_put({0}, (at,), {0}[at] * 2.0, accumulate=True)", shape)]
        code, result = self.rng.choice(options)
        self.add(code, (x,), result)

    def pad(self) -> None:
        if x := self.pick(1):
            shape = self.shapes[x]
            self.add("F.pad({0}, (1, 2))", (x,), (*shape[:-1], f"({shape[-1]})+3"))


UNARIES, BINARIES, SAMES, REDUCTIONS, WRITING = map(_listed, (UNARY, BINARY, SAME_SHAPE, REDUCE, WRITES))
_made: dict[str, Program] = {}


def program(number: int) -> Program:
    rng = random.Random(0xF022 + number)
    return Builder(rng).build(rng.randint(3, 9))


def source(number: int) -> str:
    made = program(number)
    text = made.source()
    _made[text] = made
    return text


def budget(profile: Profile) -> Profile:
    """A graph is met once and costs its compiles: few forms, some calls each."""
    return replace(profile, forms=2, examples=min(profile.examples, 24), static=12 if profile.static else 0)


# ------------------------------------------------------------------------------------------------ smaller


def smaller(suspect: Suspect, text: str, backend: Backend, target: Target, seconds: float = 150.0) -> Suspect:
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
            if fails(candidate, suspect, backend, target):
                best, example, moved = trial, candidate, True
                break
    return Suspect(replace(example, dynamic=tuple(d for d in example.dynamic if d in example.base().dims)), suspect.differences)


def fails(example: Example, suspect: Suspect, backend: Backend, target: Target) -> bool:
    runner = runner_for(backend, target, example.base(), Tally(), example.source)
    try:
        if not isinstance(runner, Served):
            return False
        end = runner.replay(list(example.calls), example.dynamic)
        return end == len(example.calls) - 1 and runner.last[0].kind is suspect.kind
    except (Rejected, UsageError):
        return False
    finally:
        runner.close()


def _trials(program: Program, calls: tuple[Call, ...]) -> Iterator[tuple[Program, tuple[Call, ...]]]:
    for output in program.outputs:
        if len(program.outputs) > 1:
            yield _tidy(replace(program, outputs=tuple(o for o in program.outputs if o != output)), calls)
    for line in reversed(program.lines):
        rest = replace(program, lines=tuple(other for other in program.lines if other is not line))
        if not line.name:
            yield _tidy(rest, calls)
            continue
        inputs = [name for name, _, kind in program.inputs if not kind]
        for name in [*inputs, *(other.name for other in program.lines[: program.lines.index(line)] if other.name)]:
            if program.shape_of(name) == line.shape:
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

