"""The longest partial match of a pattern in a graph, and the first node that differs.

The walk is that of torch's matcher: from an output of the pattern to its inputs. Where torch stops, it goes on, so that the size of the
partial match says how near the graph is. It may begin in the middle of the pattern: then what should use the last matched node differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from conformance.passes.form import Form, Op, Ref, shown
from conformance.passes.pattern import Call, Dims, Input, Pattern, parts, shown_part

COMMUTATIVE = re.compile(
    r"(?:aten\.|operator\.)?(?:add|mul|maximum|minimum|logical_and|logical_or|bitwise_and|bitwise_or)(?:\.\w+)?"
)
DTYPE = re.compile(r"(?:bfloat|float|int|uint|complex)\d+\w*|bool")
SKIPS = 2  # differences behind which one walk goes on
SHAPED = re.compile(r"aten\.(?:view|_unsafe_view|reshape|expand|permute|repeat|slice|select|squeeze|unsqueeze)\b.*")


@dataclass(frozen=True)
class Difference:
    """One way in which a graph is not the pattern.

    kind      op, order, arguments, argument, keyword, dtype, shape, users, input, value, write or check
    node      the node of the graph; "" where there is none
    expected  what the pattern has there
    found     what the graph has
    where     the line of the program that the node stands for
    """

    kind: str
    node: str
    expected: str
    found: str
    where: str = ""

    def __str__(self) -> str:
        at = f" at {self.node}" if self.node else ""
        place = f" ({self.where})" if self.where else ""
        return f"{self.kind}{at}: the pattern has {self.expected}, the graph has {self.found}{place}"


@dataclass
class NearMiss:
    """How far a pattern matches: so many of its calls, at these nodes, and what differs, the first thing first."""

    pattern: str
    calls: int
    matched: int
    nodes: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def first(self) -> Difference | None:
        return self.differences[0] if self.differences else None

    def __str__(self) -> str:
        said = str(self.first) if self.first else "nothing differs"
        return f"{self.pattern}: {self.matched} of {self.calls} calls match; {said}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NearMiss:
        return cls(**{**data, "differences": [Difference(**each) for each in data["differences"]]})


def nearest(pattern: Pattern, form: Form) -> NearMiss:
    """The best partial match anywhere in the graph."""
    calls = pattern.calls()
    best: Walk | None = None
    for depth, call in enumerate(calls):
        for op in form.calls():
            if op.target in call.targets:
                walk = Walk(pattern, form).begin(call, op)
                walk.depth = depth
                if best is None or walk.rank() > best.rank():
                    best = walk
    if best is None:
        wanted = pattern.outputs[0].op() if pattern.outputs else "nothing"
        absent = Difference("op", "", wanted, "no such op anywhere")
        return NearMiss(pattern.name, len(calls), 0, [], [absent])
    return best.result()


def matches(pattern: Pattern, form: Form) -> list[list[str]]:
    """The nodes of every whole match, the last node of the graph first, as torch's matcher goes; no node is in two of them."""
    found: list[list[str]] = []
    taken: set[str] = set()
    for op in reversed(form.calls()):
        if not pattern.outputs or op.target not in pattern.outputs[0].targets:
            continue
        walk = Walk(pattern, form).begin(pattern.outputs[0], op)
        nodes = walk.result()
        if not nodes.differences and nodes.matched == nodes.calls and not taken & {*nodes.nodes}:
            found.append(nodes.nodes)
            taken |= {*nodes.nodes}
    return found


class Walk:
    """One walk from one node."""

    def __init__(self, pattern: Pattern, form: Form) -> None:
        self.pattern, self.form = pattern, form
        self.nodes: dict[int, str] = {}  # call of the pattern → node
        self.inputs: dict[str, Any] = {}
        self.differences: list[Difference] = []
        self.soft: list[Difference] = []  # what only some versions of torch mind
        self.depth = self.skipped = 0

    def rank(self) -> tuple[int, int]:
        """Larger is better: nodes that match, less what differs; the nearer to an output of the pattern, the better."""
        return len(self.nodes) - len(self.differences), -self.depth

    def begin(self, call: Call, op: Op) -> Walk:
        self.compare(call, Ref(op.name))
        if not any(call is output for output in self.pattern.outputs):
            self.differences[:0] = [self._consumer(call, op)]
        for output in self.pattern.outputs:
            if id(output) not in self.nodes and output is not call:
                self._other_output(output)
        return self

    def result(self) -> NearMiss:
        order = {name: index for index, name in enumerate(self.form.ops)}
        nodes = sorted(dict.fromkeys(self.nodes.values()), key=order.__getitem__)
        return NearMiss(
            self.pattern.name, len(self.pattern.calls()), len(self.nodes), nodes, self.differences or self.soft
        )

    # -------------------------------------------------------------------------------------------- outside in

    def _consumer(self, call: Call, op: Op) -> Difference:
        """What uses the last node that matched is not what the pattern has there."""
        wanted = self.pattern.consumers(call)
        expected = f"{wanted[0].op()} of {op.name}" if wanted else "nothing"
        users = [self.form[name] for name in op.users]
        if not users:
            return Difference("op", op.name, expected, "nothing that uses it", op.where)
        found = ", ".join(f"{user.call() if user.kind == 'call' else 'the output'}" for user in users[:2])
        return Difference("op", users[0].name, expected, found, users[0].where or op.where)

    def _other_output(self, output: Call) -> None:
        """A pattern with several outputs: the best node for another one, given what is matched already."""
        best: Walk | None = None
        for op in self.form.calls():
            if op.target in output.targets and op.name not in self.nodes.values():
                walk = self._copy()
                walk.compare(output, Ref(op.name))
                if best is None or walk.rank() > best.rank():
                    best = walk
        if best is None:
            self.differences.append(Difference("op", "", output.op(), "no such op anywhere"))
        else:
            self.nodes, self.inputs, self.differences, self.soft = best.nodes, best.inputs, best.differences, best.soft

    def _copy(self) -> Walk:
        other = Walk(self.pattern, self.form)
        other.nodes, other.inputs = dict(self.nodes), dict(self.inputs)
        other.differences, other.soft, other.depth = [*self.differences], [*self.soft], self.depth
        other.skipped = self.skipped
        return other

    # --------------------------------------------------------------------------------------------- inside

    def compare(self, call: Call, value: Any) -> None:
        """Is this value the call of the pattern? What is not is written down."""
        if not isinstance(value, Ref):
            self._differs("input", "", call.op(), f"the constant {shown(value)}")
            return
        op = self.form[value.name]
        if id(call) in self.nodes:
            if self.nodes[id(call)] != op.name:
                self._differs("value", op, f"{self.nodes[id(call)]} again", op.name)
            return
        if op.kind != "call" or op.target not in call.targets:
            found = (
                op.call() if op.kind == "call" else f"{'an input' if op.kind == 'input' else 'a constant'}, {op.name}"
            )
            self._differs("op", op, call.op(), found)
            self._resume(call, op)
            return
        self.nodes[id(call)] = op.name
        self._users(call, op)
        if not call.any_args:
            self._arguments(call, op)
        self._value(call, op)

    def _resume(self, call: Call, op: Op) -> None:
        """Go on behind a difference: the graph has one op more than the pattern there, one less, or another."""
        if self.skipped >= SKIPS:
            return
        inside = [part for part in parts(call) if isinstance(part, Call)]
        tries = [(part, name) for part in (call, *inside) for name in op.inputs()] + [
            (part, op.name) for part in inside
        ]
        best = self
        for part, name in tries:
            if self.form[name].target in part.targets:
                walk = self._copy()
                walk.skipped += 1
                walk.compare(part, Ref(name))
                best = max(best, walk, key=lambda each: each.rank())
        self.nodes, self.inputs, self.differences, self.soft = best.nodes, best.inputs, best.differences, best.soft

    def _users(self, call: Call, op: Op) -> None:
        output = any(call is each for each in self.pattern.outputs)
        if not output and call.users is not None and len(op.users) != call.users:
            inside = {self.nodes.get(id(each)) for each in self.pattern.consumers(call)}
            others = [name for name in op.users if name not in inside]
            also = [("the output" if self.form[name].kind == "output" else name) for name in others]
            found = f"{len(op.users)} users{f', {chr(44).join(also)} too' if also else ''}"
            self._differs("users", op, f"{call.users} user{'s' if call.users > 1 else ''} of {op.target}", found)

    def _arguments(self, call: Call, op: Op) -> None:
        args = op.args
        if len(args) != len(call.args):
            self._differs("arguments", op, f"{len(call.args)} arguments of {op.target}", f"{len(args)}")
            return
        if len(args) == 2 and COMMUTATIVE.fullmatch(op.target) and self._swapped(call, op):
            return
        for index, (part, value) in enumerate(zip(call.args, args, strict=True)):
            self._part(part, value, op, f"argument {index}")
        for name, part in call.kwargs.items():
            if name in op.kwargs:
                self._part(part, op.kwargs[name], op, name)
            elif not isinstance(part, Input):
                self._differs("keyword", op, f"{name}={shown_part(part)}", "no such argument")
        for name, value in op.kwargs.items():
            if name not in call.kwargs:
                where = op.where
                self.soft.append(Difference("keyword", op.name, f"no {name}", f"{name}={shown(value)}", where))

    def _swapped(self, call: Call, op: Op) -> bool:
        """Do the operands match the other way round, and not as they are?"""
        tries = []
        for args in (op.args, op.args[::-1]):
            walk = self._copy()
            for index, (part, value) in enumerate(zip(call.args, args, strict=True)):
                walk._part(part, value, op, f"argument {index}")
            tries.append(walk)
        if (len(tries[1].nodes), -len(tries[1].differences)) <= (len(tries[0].nodes), -len(tries[0].differences)):
            return False
        other = tries[1]
        others = other.differences[len(self.differences) :]
        self.nodes, self.inputs, self.soft = other.nodes, other.inputs, other.soft
        expected = f"{call.op()}({', '.join(_brief(part) for part in call.args)})"
        self._differs("order", op, expected, f"{op.call()}, the operands the other way round")
        self.differences += others
        return True

    def _part(self, part: Any, value: Any, op: Op, name: str) -> None:
        """One argument, or one element of an argument that is a list."""
        if isinstance(part, Call):
            self.compare(part, value)
        elif isinstance(part, Input):
            self._input(part, value, op)
        elif isinstance(part, Dims):
            if not _same_dims(part, value):
                self._differs("argument", op, f"{name} of {op.target} = {part}", shown(value))
        elif isinstance(part, tuple) and any(isinstance(each, (Call, Input)) for each in part):
            if not isinstance(value, tuple) or len(value) != len(part):
                self._differs("arguments", op, f"{name} of {op.target} with {len(part)} elements", shown(value))
                return
            for each, one in zip(part, value, strict=True):
                self._part(each, one, op, name)
        elif part != value or type(part) is not type(value):
            if isinstance(part, (int, float)) and isinstance(value, (int, float)) and part == value:
                return  # 1 and 1.0 are equal to torch, too
            self._differs(_constant_kind(part, op), op, f"{name} of {op.target} = {shown_part(part)}", shown(value))

    def _input(self, part: Input, value: Any, op: Op) -> None:
        if part.ignored or not part.name:
            return
        known = self.inputs.setdefault(part.name, value)
        if known != value:
            self._differs("value", op, f"{part.name} = {shown(known)} again", shown(value))

    def _value(self, call: Call, op: Op) -> None:
        if call.value is None or op.shape is None:
            return
        shape, dtype = call.value
        if dtype != op.dtype:
            self._differs("dtype", op, f"{op.target} of dtype {dtype}", op.dtype)
        elif tuple(map(str, shape)) != tuple(map(str, op.shape)):
            self._differs("shape", op, f"{op.target} of shape {shown(shape)}", shown(op.shape))

    def _differs(self, kind: str, op: Op | str, expected: str, found: str) -> None:
        node, where = (op.name, op.where) if isinstance(op, Op) else (op, "")
        self.differences.append(Difference(kind, node, expected, found, where))


def _brief(part: Any) -> str:
    return f"{part.op()}(…)" if isinstance(part, Call) else shown_part(part)


def _constant_kind(part: Any, op: Op) -> str:
    if isinstance(part, str) and DTYPE.fullmatch(part):
        return "dtype"
    return "shape" if SHAPED.fullmatch(op.target) and isinstance(part, tuple) else "argument"


def _same_dims(part: Dims, value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(each, int) for each in values):
        return False
    return tuple(d % part.rank for d in part.dims) == tuple(d % part.rank for d in values)


def best_of(patterns: Sequence[Pattern], form: Form) -> Iterator[NearMiss]:
    """The nearest miss of each pattern."""
    for pattern in patterns:
        yield nearest(pattern, form)
