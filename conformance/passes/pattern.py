"""A pattern of torch's matcher as plain data: calls, what may stand for an input, and constants.

A `Call` that appears twice in a pattern is one object: it must be the same node of the graph in both places, as torch has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conformance.graphs import op_name
from conformance.passes.form import plain, shown
from conformance.passes.seam import seam


@dataclass(frozen=True)
class Input:
    """Anything may stand here; what has the same name must be the same value everywhere. `ignored`: torch does not look at it."""

    name: str = ""
    ignored: bool = False

    def __str__(self) -> str:
        return self.name or "_"


@dataclass(frozen=True)
class Dims:
    """Dims of a tensor, counted from either end."""

    dims: tuple[int, ...]
    rank: int

    def __str__(self) -> str:
        return shown(self.dims)


@dataclass(eq=False)
class Call:
    """A call of one of these ops. `users` is the number of nodes that may use it; None: any number."""

    targets: tuple[str, ...]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    users: int | None = 1
    any_args: bool = False  # arguments are not looked at
    value: tuple[tuple[Any, ...], str] | None = (
        None  # the shape and dtype that its value must have, where torch asks for them
    )

    def __str__(self) -> str:
        said = [str(a) if isinstance(a, (Call, Input, Dims)) else shown_part(a) for a in self.args]
        said += [f"{k}={shown_part(v)}" for k, v in self.kwargs.items()]
        return f"{self.op()}({', '.join(said)})"

    def op(self) -> str:
        return " or ".join(self.targets[:3]) + (" or …" if len(self.targets) > 3 else "")


@dataclass
class Pattern:
    """The outputs of a pattern: what must match, the first one being where the matcher begins."""

    name: str
    outputs: tuple[Call, ...]

    def calls(self) -> list[Call]:
        """All calls, outputs first, each once, in the order in which the matcher comes to them."""
        found: dict[int, Call] = {}
        for output in self.outputs:
            for call in walk(output):
                found.setdefault(id(call), call)
        return list(found.values())

    def consumers(self, call: Call) -> list[Call]:
        """The calls of the pattern that use this one."""
        return [other for other in self.calls() if any(part is call for part in parts(other))]

    def __str__(self) -> str:
        return " and ".join(map(str, self.outputs))


def parts(call: Call) -> Iterator[Any]:
    """The arguments of a call, those inside lists too."""
    for value in (*call.args, *call.kwargs.values()):
        yield from leaves(value)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def walk(call: Call) -> Iterator[Call]:
    yield call
    for part in parts(call):
        if isinstance(part, Call):
            yield from walk(part)


def shown_part(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown_part, value))}]"
    return str(value) if isinstance(value, (Call, Input, Dims)) else shown(value)


# ---------------------------------------------------------------------------------------------- from torch


def pattern_of(expression: Any, name: str = "") -> Pattern:
    """A pattern of torch's as plain data."""
    known: dict[int, Any] = {}
    outputs = getattr(expression, "outputs", None) or [expression]
    found = [_converted(one, known) for one in outputs if one is not None]
    return Pattern(name, tuple(one for one in found if isinstance(one, Call)))


def _converted(expression: Any, known: dict[int, Any]) -> Any:
    if id(expression) not in known:
        known[id(expression)] = _convert(expression, known)
    return known[id(expression)]


def _convert(expression: Any, known: dict[int, Any]) -> Any:
    kind = type(expression).__name__
    if kind in ("KeywordArg", "ExclusiveKeywordArg"):
        return Input(expression.name)
    if kind == "Ignored":
        return Input(ignored=True)
    if kind == "CanonicalDims":
        return Dims(tuple(expression.dims), expression.rank)
    if hasattr(expression, "inner_pattern"):  # a call that is repeated
        return _converted(expression.inner_pattern, known)
    if hasattr(expression, "fns"):
        return _call(expression, known)
    if hasattr(expression, "pattern") or kind in ("Arg", "GetAttr"):  # a list of something; any value
        return Input()
    if isinstance(expression, (list, tuple)):
        return tuple(_converted(one, known) for one in expression)
    return plain(expression)


def _call(expression: Any, known: dict[int, Any]) -> Call:
    targets = tuple(dict.fromkeys(op_name(fn) for fn in expression.fns))
    args = getattr(expression, "args", None)
    users = None if expression.users is seam.any_number else int(expression.users)
    if args is None:
        return Call(targets, users=users, any_args=True)
    kwargs = {name: _converted(value, known) for name, value in expression.kwargs.items()}
    meta = getattr(
        expression, "expected_meta", None
    )  # of a pattern that was traced anew with the sizes of the match (2.15)
    value = (tuple(map(plain, meta[0])), str(meta[1]).removeprefix("torch.")) if meta else None
    return Call(targets, tuple(_converted(a, known) for a in args), kwargs, users, value=value)


# --------------------------------------------------------------------------------------------- as JSON


def to_json(pattern: Pattern) -> dict[str, Any]:
    """Calls as a list, each referring to others by its index."""
    calls = pattern.calls()
    index = {id(call): number for number, call in enumerate(calls)}

    def said(value: Any) -> Any:
        if isinstance(value, Call):
            return {"call": index[id(value)]}
        if isinstance(value, Input):
            return {"input": value.name, "ignored": value.ignored}
        if isinstance(value, Dims):
            return {"dims": value.dims, "rank": value.rank}
        return [said(v) for v in value] if isinstance(value, (list, tuple)) else value

    listed = [
        {
            "targets": call.targets,
            "args": said(call.args),
            "kwargs": {k: said(v) for k, v in call.kwargs.items()},
            "users": call.users,
            "any_args": call.any_args,
        }
        for call in calls
    ]
    return {"name": pattern.name, "calls": listed, "outputs": [index[id(call)] for call in pattern.outputs]}


def from_json(data: dict[str, Any]) -> Pattern:
    calls = [Call(tuple(c["targets"]), users=c["users"], any_args=c["any_args"]) for c in data["calls"]]

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(read(v) for v in value)
        if isinstance(value, dict):
            if "call" in value:
                return calls[value["call"]]
            return (
                Dims(tuple(value["dims"]), value["rank"])
                if "dims" in value
                else Input(value["input"], value["ignored"])
            )
        return value

    for call, said in zip(calls, data["calls"], strict=True):
        call.args = read(said["args"])
        call.kwargs = {k: read(v) for k, v in said["kwargs"].items()}
    return Pattern(data["name"], tuple(calls[number] for number in data["outputs"]))


# --------------------------------------------------------------------------------------------- as source


def source(pattern: Pattern) -> str:
    """The pattern as an author would write it for torch's matcher."""
    shared = {id(c) for c in pattern.calls() if len([1 for o in pattern.calls() for p in parts(o) if p is c]) > 1}
    lines: list[str] = []
    names: dict[int, str] = {}

    def said(value: Any) -> str:
        if isinstance(value, Call):
            return written(value)
        if isinstance(value, Input):
            return "Ignored()" if value.ignored else f"KeywordArg({value.name!r})" if value.name else "Arg()"
        if isinstance(value, Dims):
            return repr(list(value.dims))
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(said, value))}]"
        return repr(value)

    def written(call: Call) -> str:
        if id(call) in names:
            return names[id(call)]
        targets = call.targets[0] if len(call.targets) == 1 else f"[{', '.join(call.targets)}]"
        words = [targets, *map(said, call.args), *(f"{k}={said(v)}" for k, v in call.kwargs.items())]
        if call.users != 1:
            words.append("_users=MULTIPLE" if call.users is None else f"_users={call.users}")
        text = f"CallFunction{'VarArgs' if call.any_args else ''}({', '.join(words)})"
        if id(call) in shared:
            names[id(call)] = f"shared_{len(names)}"
            lines.append(f"{names[id(call)]} = {text}")
            return names[id(call)]
        return text

    outputs = [written(output) for output in pattern.outputs]
    last = outputs[0] if len(outputs) == 1 else f"MultiOutputPattern([{', '.join(outputs)}])"
    return "\n".join([*lines, f"pattern = {last}"])
