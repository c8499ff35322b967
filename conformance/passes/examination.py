"""All that is said of a pass on one micrograph: matches, graph before and after, what is wrong, what it costs, why it did not match."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Case
from conformance.backends.inductor.backend import InductorBackend
from conformance.errors import first_line
from conformance.micrograph import Micrograph
from conformance.passes import neighbours, variants
from conformance.passes.application import LIMIT
from conformance.passes.compilation import Compilation, End, compile_with
from conformance.passes.form import Form, difference, form_of
from conformance.passes.near_miss import NearMiss
from conformance.passes.pattern import to_json as pattern_json
from conformance.passes.refusal import explain
from conformance.passes.rungs import Climb, Loss, Rung
from conformance.passes.soundness import Finding, as_finding, findings
from conformance.passes.subject import Subject
from conformance.stage import Stage
from conformance.target import CPU, Target


@dataclass(frozen=True)
class Depth:
    """How much is looked at. `variants` and `neighbours` are looked at where the pass matched; `cost` says what the program costs before and
    after; `build` builds the code and runs it."""

    variants: bool = True
    neighbours: bool = True
    cost: bool = True
    build: bool = False
    limit: float = LIMIT


@dataclass
class Price:
    """What a program costs by Inductor's own accounting; None where a size is not known."""

    kernels: int
    bytes: int | None = None
    temporaries: int | None = None

    @classmethod
    def of(cls, made: Compilation) -> Price:
        cost = made.cost()
        return cls(made.kernels(), cost.bytes if cost else None, cost.temporaries if cost else None)


@dataclass
class VariantResult:
    """The pass on a variant of the micrograph. `why` says what differs where it did not match, `skipped` why it was not tried."""

    matches: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    skipped: str = ""
    why: str = ""


@dataclass
class Examination:
    """One pass on one micrograph. `skipped` says why nothing was examined."""

    name: str  # of the pass
    micrograph: str
    target: str
    torch: str
    matches: dict[str, int] = field(default_factory=dict)
    nodes: list[tuple[str, list[str]]] = field(default_factory=list)
    before: Form | None = None
    after: Form | None = None
    findings: list[Finding] = field(default_factory=list)
    without: Price | None = None  # the cost of the program compiled without the pass, and with it
    cost: Price | None = None
    variants: dict[str, VariantResult] = field(default_factory=dict)
    neighbours: list[neighbours.Neighbour] = field(default_factory=list)
    misses: list[NearMiss] = field(default_factory=list)
    loss: Loss | None = None
    rungs: list[Rung] = field(default_factory=list)
    patterns: list[dict[str, Any]] = field(default_factory=list)
    built: bool = False
    skipped: str = ""

    @property
    def total(self) -> int:
        return sum(self.matches.values())

    def all_findings(self) -> list[Finding]:
        """Those of the micrograph, its variants and its neighbours."""
        found = list(self.findings)
        for name, variant in self.variants.items():
            found += [Finding(f.kind, f"{name}: {f.detail}") for f in variant.findings]
        for each in self.neighbours:
            found += [Finding(f.kind, f"neighbour ({each.name}): {f.detail}") for f in each.findings]
        return found

    def serious(self) -> list[Finding]:
        return [finding for finding in self.all_findings() if finding.serious]

    def why(self) -> str:
        """Why a pattern did not match, and which step took its match away; for the message of an assertion."""
        said = [str(miss) for miss in self.misses] + ([f"taken away by {self.loss}"] if self.loss else [])
        return "\n".join(said) or "every pattern matched"

    def diff(self) -> list[str]:
        return difference(self.before, self.after) if self.before and self.after else []

    def to_json(self) -> dict[str, Any]:
        plain = ("name", "micrograph", "target", "torch", "matches", "nodes", "patterns", "built", "skipped")
        return {
            **{key: getattr(self, key) for key in plain},
            "before": self.before.to_json() if self.before else None,
            "after": self.after.to_json() if self.after else None,
            "findings": [f.to_json() for f in self.findings],
            "without": asdict(self.without) if self.without else None,
            "cost": asdict(self.cost) if self.cost else None,
            "variants": {name: asdict(variant) for name, variant in self.variants.items()},
            "neighbours": [each.to_json() for each in self.neighbours],
            "misses": [miss.to_json() for miss in self.misses],
            "loss": self.loss.to_json() if self.loss else None,
            "rungs": [rung.to_json() for rung in self.rungs],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Examination:
        made = cls(data["name"], data["micrograph"], data["target"], data["torch"])
        for key in ("matches", "nodes", "patterns", "built", "skipped"):
            setattr(made, key, data[key])
        made.before = Form.from_json(data["before"]) if data["before"] else None
        made.after = Form.from_json(data["after"]) if data["after"] else None
        made.findings = [Finding(**f) for f in data["findings"]]
        made.without = Price(**data["without"]) if data["without"] else None
        made.cost = Price(**data["cost"]) if data["cost"] else None
        made.variants = {
            name: VariantResult(v["matches"], [Finding(**f) for f in v["findings"]], v["skipped"], v["why"])
            for name, v in data["variants"].items()
        }
        made.neighbours = [
            neighbours.Neighbour(n["name"], n["matches"], [Finding(**f) for f in n["findings"]])
            for n in data["neighbours"]
        ]
        made.misses = [NearMiss.from_json(m) for m in data["misses"]]
        if loss := data["loss"]:
            stage = Stage(loss["stage"]) if loss["stage"] else None
            made.loss = Loss(stage, loss["step"], loss["why"], [NearMiss.from_json(m) for m in loss["misses"]])
        made.rungs = [Rung.from_json(rung) for rung in data["rungs"]]
        return made


def examine(subject: Subject, cls: type[Micrograph], target: Target = CPU, depth: Depth = Depth()) -> Examination:  # noqa: B008
    """The pass on one micrograph for Inductor."""
    made = Examination(subject.name, cls.name(), str(target), str(torch.__version__))
    if cls.has_scenario():
        made.skipped = "it is a scenario of several calls"
        return made
    with InductorBackend().settings(Case(cls, target)):  # those that the micrograph asks for; equal random numbers
        return _examined(made, subject, cls, target, depth)


def _examined(made: Examination, subject: Subject, cls: type[Micrograph], target: Target, depth: Depth) -> Examination:
    one = variants.base(cls)
    reference = oracle.reference(one.module, one.inputs)
    if reference.eager.error is not None:
        made.skipped = f"eager does not run it: {first_line(reference.eager.error)}"
        return made
    end = End.CODE if depth.cost else End.PASSES
    done = compile_with(subject, one.module, one.inputs, target=target, options=one.options, end=end, limit=depth.limit)
    made.matches, made.cost = done.matches, Price.of(done) if depth.cost else None
    made.patterns = [pattern_json(pattern) for pattern in subject.patterns()]
    if done.applications:
        given = done.applications[0]
        made.nodes, made.before = given.nodes, form_of(given.before)
        made.after = form_of(given.after) if given.after is not None else None
    without = _without(one, target, End.CODE) if made.total and depth.cost else None
    made.without = Price.of(without) if without else None
    made.findings = _judged(subject, done, reference, lambda: without or _without(one, target))
    if not done.applications and not made.findings:
        made.skipped = "Inductor was given no graph"
        return made
    _why(made, subject, done, one)
    if made.total and not made.serious():
        _deeper(made, subject, cls, target, depth, done)
    return made


def _without(one: variants.Variant, target: Target, end: End = End.PASSES) -> Compilation:
    """The same program compiled without the pass."""
    return compile_with(None, one.module, one.inputs, target=target, options=one.options, end=end)


def _judged(
    subject: Subject, done: Compilation, reference: oracle.Reference, without: Callable[[], Compilation]
) -> list[Finding]:
    """What the pass did wrong. What is wrong without it as well is not its doing."""
    found = [finding for each in done.applications for finding in findings(subject, each)]
    if any(f.kind in ("raised", "timeout", "broken_graph") for f in found):
        return found
    return [*found, *_wrong(done, reference, without, found)]


def _wrong(
    done: Compilation,
    reference: oracle.Reference,
    without: Callable[[], Compilation],
    found: Sequence[Finding] = (),
    layout: bool = False,
) -> list[Finding]:
    """How the program differs from eager, where it does not without the pass and `found` does not say it already. With `layout`, strides and
    aliases count: only code that was built has those of the user's program."""
    assert done.outcome is not None
    compare = functools.partial(oracle.compare, strides=layout, aliases=layout)
    wrong = compare(done.outcome, reference)
    if not wrong:
        return []
    plain = without()
    assert plain.outcome is not None
    if done.error is not None and plain.error is None:
        return [Finding("crash", f"with the pass the compile fails: {first_line(done.error)}")]
    known = {(each.kind, each.where) for each in compare(plain.outcome, reference)}
    fresh = [each for each in wrong if (each.kind, each.where) not in known and not _told_already(each, found)]
    return [*map(as_finding, fresh)]


def _told_already(difference: oracle.Difference, found: Sequence[Finding]) -> bool:
    """A lost write shows in the inputs after the call, too: one cause is one finding."""
    return difference.kind.value == "lost_mutation" and any(f.kind in ("lost_write", "write_order") for f in found)


def _why(made: Examination, subject: Subject, done: Compilation, one: variants.Variant) -> None:
    """The rungs, and for patterns that did not match, why."""
    if not done.applications or done.applications[0].error is not None:
        return
    climb = Climb(subject, done, one.module, one.inputs)
    made.rungs = [*climb.eager, *climb.way]
    made.loss = climb.loss()
    unmatched = {name for name, count in made.matches.items() if not count}
    if unmatched or made.loss:
        near = explain(subject, done.applications[0].before)
        made.misses = [miss for miss in near if miss.pattern in unmatched]


def _deeper(
    made: Examination, subject: Subject, cls: type[Micrograph], target: Target, depth: Depth, done: Compilation
) -> None:
    if depth.variants:
        for one in variants.variants(cls):
            made.variants[one.name] = _variant(subject, one, target, depth)
    given = done.applications[0]
    if depth.neighbours and given.nodes and done.inputs and given.role == "inference" and not target.headless:
        made.neighbours = list(neighbours.neighbours(subject, given.before, given.nodes[0][1], done.inputs[0]))
    if depth.build:
        one = variants.base(cls)
        built = compile_with(subject, one.module, one.inputs, target=target, options=one.options, end=End.BUILD)
        reference = oracle.reference(one.module, one.inputs)
        made.built = True
        made.findings += _wrong(built, reference, lambda: _without(one, target, End.BUILD), layout=True)


def _variant(subject: Subject, one: variants.Variant, target: Target, depth: Depth) -> VariantResult:
    reference = oracle.reference(one.module, one.inputs)
    if reference.eager.error is not None:
        return VariantResult(skipped=f"eager does not run it: {first_line(reference.eager.error)}")
    given: dict[str, Any] = {"target": target, "options": one.options, "limit": depth.limit}
    done = compile_with(subject, one.module, one.inputs, end=End.PASSES, **given)
    if not sum(done.matches.values()):
        misses = explain(subject, done.applications[0].before) if done.applications else []
        return VariantResult(done.matches, why=str(misses[0].first) if misses and misses[0].first else "")
    return VariantResult(done.matches, _judged(subject, done, reference, lambda: _without(one, target)))
