"""Two examinations of the same pass and micrograph, by two versions of torch or for two targets: what changed, and at which stage first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from conformance.passes.examination import Examination
from conformance.passes.form import Form, side_by_side
from conformance.passes.near_miss import Difference, matches, nearest
from conformance.passes.pattern import Call, Input, Pattern, from_json, source
from conformance.passes.rungs import CAPTURED, DECOMPOSED, EAGER, EAGER_DECOMPOSED, HOOK, Rung
from conformance.stage import Stage

AOT = "AOTAutograd's graph"
MANY = 30  # lines of a graph that has nothing of the pattern
# The order in which rungs are compared: eager's own calls beside Dynamo's graph in the same form, then the steps of the compiler.
STAGES: dict[str, Stage | None] = {
    EAGER: None,
    CAPTURED: Stage.CAPTURE,
    EAGER_DECOMPOSED: Stage.DECOMPOSITION,
    DECOMPOSED: Stage.DECOMPOSITION,
    AOT: Stage.DECOMPOSITION,
    HOOK: Stage.POSTGRAD,
}


@dataclass
class Change:
    """A count that differs between two examinations.

    stage     the first stage whose graph differs in a way that the pass minds; None: the graphs are the same
    step      what made it so
    lines     the two graphs side by side, around the pattern
    derived   a pattern that matches both graphs, as source; empty where none could be derived
    why       why none could be, or what else is to be said
    """

    old: Examination
    new: Examination
    stage: Stage | None = None
    step: str = ""
    lines: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    derived: str = ""
    why: str = ""

    def title(self) -> str:
        one, two = label(self.old, self.new), label(self.new, self.old)
        return f"{self.old.micrograph}: {counts(self.old)} with {one}, {counts(self.new)} with {two}"


def label(one: Examination, other: Examination) -> str:
    """What sets the two apart: the version, or the target."""
    version = f"torch {one.torch.split('+')[0]}"
    if one.torch == other.torch:
        return one.target if one.target != other.target else version
    return version if one.target == other.target else f"{version} for {one.target}"


def counts(one: Examination) -> str:
    return ", ".join(f"{name} {count}" for name, count in one.matches.items()) or "0"


def change(old: Examination, new: Examination) -> Change | None:
    """What changed between two examinations; None where the counts are the same."""
    if old.matches == new.matches or old.skipped or new.skipped:
        return None
    made = Change(old, new)
    pair = _first_rung(old, new)
    if pair is None:
        _same_graphs(made)
        return made
    first, second = pair
    made.stage, made.step = STAGES.get(second.label, second.stage), second.label
    if made.step == HOOK:
        made.step = _steps_between(old, new)
    elif made.step == EAGER:
        made.step = "what eager itself calls: an op's own composite implementation"
    elif made.step in (EAGER_DECOMPOSED, DECOMPOSED):
        made.step = _decomposition(made, first, second)
    _around(made, first, second)
    _derive(made, first, second)
    return made


def _first_rung(old: Examination, new: Examination) -> tuple[Rung, Rung] | None:
    """The first rung that both have, whose graphs differ, and where the pass finds another number; else the first whose graphs differ."""
    pairs = list(_pairs(old, new))
    unequal = [pair for pair in pairs if pair[0].matches != pair[1].matches and _differ(*pair)]
    return next(iter(unequal), None)


def _pairs(old: Examination, new: Examination) -> Iterator[tuple[Rung, Rung]]:
    theirs = {rung.label: rung for rung in new.rungs}
    ours = {rung.label: rung for rung in old.rungs}
    for name in STAGES:
        if name in ours and name in theirs and ours[name].form and theirs[name].form:
            yield ours[name], theirs[name]


def _differ(first: Rung, second: Rung) -> bool:
    assert first.form and second.form
    return first.form.canonical() != second.form.canonical()


def _same_graphs(made: Change) -> None:
    """The graph that the pass is given is the same: the pattern or the matcher is not."""
    one, two = (json.dumps(each.patterns, sort_keys=True) for each in (made.old, made.new))
    if one != two:
        made.step = "the pattern's own trace"
        made.why = "the graphs are the same; the pattern, traced from its example, is not"
        patterns = [next(iter(each.patterns), None) for each in (made.old, made.new)]
        made.lines = [str(from_json(p)) for p in patterns if p]
    else:
        made.step = "torch's pattern matcher"
        made.why = "graphs and pattern are the same in both: the matcher's own rules differ"
    worse = made.old if made.old.total < made.new.total else made.new
    made.differences = [miss.first for miss in worse.misses if miss.first]
    if not made.lines and worse.before and worse.misses:
        made.lines = [op.line() for op in worse.before.around(worse.misses[0].nodes, 1)]


def _steps_between(old: Examination, new: Examination) -> str:
    """The steps before the pass that only one of the two has, or that both have in another order."""
    names = [[r.label for r in each.rungs if r.label not in STAGES] for each in (old, new)]
    only = [name for name in names[1] if name not in names[0]] or [name for name in names[0] if name not in names[1]]
    return ", ".join(only) if only else "a graph pass before it"


def ops_apart(first: Rung, second: Rung) -> str:
    """Which ops only one of the two graphs has: `a became b, c`."""
    gone, come = _only(first, second), _only(second, first)
    return f"{', '.join(gone[:3]) or 'nothing'} became {', '.join(come[:3]) or 'nothing else'}"


def _only(one: Rung, other: Rung) -> list[str]:
    """The ops that only the first of two graphs calls."""
    assert one.form and other.form
    known = {op.target for op in other.form.calls()}
    return list(dict.fromkeys(op.target for op in one.form.calls() if op.target not in known))


def _decomposition(made: Change, first: Rung, second: Rung) -> str:
    """The op whose decomposition differs: one that only one of the two decomposes, or from which the nodes come that only one has."""
    captured = [rung for each in (made.old, made.new) for rung in each.rungs if rung.label in (EAGER, CAPTURED)]
    called = {op.target for rung in captured if rung.form for op in rung.form.calls()}
    gone, come = _only(first, second), _only(second, first)
    if whole := [op for op in (*come, *gone) if op in called]:
        one, other = (made.old, made.new) if whole[0] in come else (made.new, made.old)
        only = label(one, other) if label(one, other) != label(other, one) else "one of the two"
        return f"the decomposition of {', '.join(whole)}, which only {only} does"
    apart = {*gone, *come}
    made_by = (r.origins.get(op.name) for r in (first, second) if r.form for op in r.form.calls() if op.target in apart)
    named = [op for op in dict.fromkeys(made_by) if op]
    said = f"the decomposition of {', '.join(named)}" if named else "Inductor's decompositions"
    return f"{said} ({ops_apart(first, second)})"


# ---------------------------------------------------------------------------------------- around the pattern


def _pattern(made: Change) -> Pattern | None:
    """The pattern whose count changed."""
    worse = made.old if made.old.total < made.new.total else made.new
    for data in worse.patterns:
        if made.old.matches.get(data["name"]) != made.new.matches.get(data["name"]):
            return from_json(data)
    return from_json(worse.patterns[0]) if worse.patterns else None


def _around(made: Change, first: Rung, second: Rung) -> None:
    assert first.form and second.form
    pattern = _pattern(made)
    pieces = []
    for rung in (first, second):
        assert rung.form
        miss = nearest(pattern, rung.form) if pattern else None
        pieces.append(rung.form.around(miss.nodes, 1) if miss and miss.nodes else rung.form.calls()[:MANY])
        if miss and miss.first and rung.total == min(first.total, second.total):
            made.differences = miss.differences
    made.lines = side_by_side(pieces[0], pieces[1], (label(made.old, made.new), label(made.new, made.old)))


def _derive(made: Change, first: Rung, second: Rung) -> None:
    assert first.form and second.form
    pattern = _pattern(made)
    if pattern is None:
        made.why = "the pass has no pattern of torch's matcher: none can be derived"
        return
    derived = generalized(pattern, first.form, second.form)
    if derived is None:
        made.why = "no one pattern matches both: they differ in structure; register a second pattern for the other form"
    else:
        made.derived = source(derived)


def generalized(pattern: Pattern, first: Form, second: Form, limit: int = 8) -> Pattern | None:
    """The pattern loosened, one difference at a time, until it matches both graphs; None where that cannot be done."""
    data = pattern
    for _ in range(limit):
        form = next((form for form in (first, second) if not matches(data, form)), None)
        if form is None:
            return data
        miss = nearest(data, form)
        looser = _loosened(data, miss.first, form) if miss.first else None
        if looser is None:
            return None
        data = looser
    return None


def _loosened(pattern: Pattern, differing: Difference, form: Form) -> Pattern | None:
    """The pattern with this one difference allowed: another constant, another number of users, an op of the same arguments."""
    known: dict[int, Call] = {}

    def copy(value: object) -> object:
        if isinstance(value, Call):
            if id(value) not in known:
                known[id(value)] = replace(value, kwargs={})
                known[id(value)].args = tuple(copy(a) for a in value.args)
                known[id(value)].kwargs = {k: copy(v) for k, v in value.kwargs.items()}
            return known[id(value)]
        return tuple(copy(v) for v in value) if isinstance(value, tuple) else value

    twin = Pattern(pattern.name, tuple(copy(output) for output in pattern.outputs))  # type: ignore[misc]
    op = form.ops.get(differing.node)
    for call in twin.calls():
        if op is None:
            continue
        if differing.kind in ("argument", "dtype", "shape") and op.target in call.targets:
            opened = tuple(a if isinstance(a, (Call, Input)) else Input(ignored=True) for a in call.args)
            if opened != call.args:
                call.args = opened
                return twin
        if differing.kind == "users" and op.target in call.targets and call.users is not None:
            call.users = None
            return twin
        wanted = differing.expected.split(" of ")[0]
        if differing.kind == "op" and call.op() == wanted and op.kind == "call" and len(op.args) == len(call.args):
            call.targets = (*call.targets, op.target)
            return twin
    return None
