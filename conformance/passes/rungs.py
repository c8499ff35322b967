"""The pass tried on the graph of every earlier step of the same compile: the step that took its match away.

The rungs, in the order of the compiler: what the module calls without Dynamo, Dynamo's graph (each as ATen calls, and decomposed as
Inductor would), AOTAutograd's graph, and the graph after every graph pass that changed it, up to the pass itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta

from conformance.backends.inductor.seam import seam as inductor
from conformance.errors import first_line
from conformance.graphs import copied, op_name
from conformance.passes.application import apply
from conformance.passes.compilation import Compilation
from conformance.passes.form import Form, form_of
from conformance.passes.near_miss import NearMiss
from conformance.passes.refusal import explain
from conformance.passes.seam import seam
from conformance.passes.subject import Subject
from conformance.stage import Stage

EAGER, EAGER_DECOMPOSED = "what the module calls, without Dynamo", "the same, decomposed"
CAPTURED, DECOMPOSED = "Dynamo's graph as ATen calls", "Dynamo's graph, decomposed"
HOOK = "the graph that the pass is given"
Table = Mapping[Any, Callable[..., Any]]


@dataclass
class Rung:
    """The program after one step. `label` says which; `matches` is what the pass finds there; `patterns` are torch's own that applied;
    `origins`, for a decomposed graph: node → the op whose decomposition made it."""

    label: str
    stage: Stage | None
    matches: dict[str, int] = field(default_factory=dict)
    form: Form | None = None
    patterns: list[str] = field(default_factory=list)
    error: str = ""
    origins: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.matches.values())

    def count(self, name: str) -> int:
        return self.matches.get(name, 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "stage": self.stage.value if self.stage else None,
            "matches": self.matches,
            "form": self.form.to_json() if self.form else None,
            "patterns": self.patterns,
            "error": self.error,
            "origins": self.origins,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rung:
        return cls(
            data["label"],
            Stage(data["stage"]) if data["stage"] else None,
            dict(data["matches"]),
            Form.from_json(data["form"]) if data["form"] else None,
            list(data["patterns"]),
            data["error"],
            dict(data.get("origins", {})),
        )


@dataclass
class Loss:
    """The step that took a match away. `step` names it; `why` says how that is known; `misses` are the near misses after it."""

    stage: Stage | None
    step: str
    why: str
    misses: list[NearMiss] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.stage or 'no stage'}: {self.step}; {self.why}"

    def to_json(self) -> dict[str, Any]:
        stage = self.stage.value if self.stage else None
        return {"stage": stage, "step": self.step, "why": self.why, "misses": [m.to_json() for m in self.misses]}


class Climb:
    """The rungs of one compile."""

    def __init__(self, subject: Subject, compilation: Compilation, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        self.subject, self.compilation, self.module, self.inputs = subject, compilation, module, inputs
        self.graphs: dict[str, fx.GraphModule] = {}
        self.eager: list[Rung] = []
        self.way: list[Rung] = []
        if subject.hook.aten and compilation.captured:
            self.eager = [
                self._traced(label, None, self._eager, table) for label, table in self._tables(EAGER, EAGER_DECOMPOSED)
            ]
            stages = dict(zip((CAPTURED, DECOMPOSED), (Stage.CAPTURE, Stage.DECOMPOSITION), strict=True))
            self.way = [
                self._traced(label, stages[label], self._captured, table)
                for label, table in self._tables(CAPTURED, DECOMPOSED)
            ]
        self._steps()

    @staticmethod
    def _tables(raw: str, decomposed: str) -> list[tuple[str, Table]]:
        return [(raw, {}), (decomposed, inductor.select_decompositions())]

    # -------------------------------------------------------------------------------------------- the rungs

    def _steps(self) -> None:
        role = self.compilation.applications[0].role if self.compilation.applications else "inference"
        for step in self.compilation.steps:
            dynamo = step.stage is Stage.CAPTURE and self.subject.hook.aten
            if step.graph == 0 and step.role in (role, "joint") and not dynamo:
                self.way.append(self._counted(step.label, step.stage, step.gm, step.patterns))
        if self.compilation.applications:
            given = self.compilation.applications[0]
            rung = Rung(HOOK, self.subject.hook.stage, dict(given.matches), form_of(given.before))
            self.graphs[HOOK] = given.before
            self.way.append(rung)

    def _counted(self, label: str, stage: Stage | None, gm: fx.GraphModule, patterns: list[str] | None = None) -> Rung:
        self.graphs[label] = gm
        done = apply(self.subject, copied(gm))
        error = first_line(done.error) if done.error is not None else done.broken
        return Rung(label, stage, dict(done.matches), form_of(gm), patterns or [], error, _origins(gm))

    def _traced(self, label: str, stage: Stage | None, trace: Callable[[Table], fx.GraphModule], table: Table) -> Rung:
        try:
            return self._counted(label, stage, trace(table))
        except Exception as error:  # a program that cannot be traced in this form has no such rung
            return Rung(label, stage, error=first_line(error))

    def _eager(self, table: Table) -> fx.GraphModule:
        """The module's own calls: nothing was captured, nothing was functionalized."""
        mode = seam.fake_mode(allow_non_fake_inputs=True)
        state = {name: mode.from_tensor(value) for name, value in _state(self.module).items()}
        given = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in self.inputs]

        def call(state: dict[str, torch.Tensor], *inputs: Any) -> Any:
            return torch.func.functional_call(self.module, state, inputs)

        with mode, torch.no_grad(), preserve_node_meta():
            return _lean(make_fx(call, decomposition_table=dict(table))(state, *given))

    def _captured(self, table: Table) -> fx.GraphModule:
        gm, inputs = self.compilation.captured[0]
        mode = inductor.detect_fake_mode(inputs)
        given = inputs if mode is not None else [x.detach() if isinstance(x, torch.Tensor) else x for x in inputs]
        with mode or seam.fake_mode(allow_non_fake_inputs=True), torch.no_grad(), preserve_node_meta():
            return _lean(make_fx(copied(gm), decomposition_table=dict(table))(*given))

    # --------------------------------------------------------------------------------------------- the answer

    def loss(self) -> Loss | None:
        """The step after which fewer matches of a pattern were left; None where the pass finds as many as at any rung."""
        if not self.way:
            return None
        names = [*self.way[-1].matches, *(name for rung in self.way for name in rung.matches)]
        found = (self._loss(name) for name in dict.fromkeys(names))
        return next((loss for loss in found if loss is not None), None)

    def _loss(self, name: str) -> Loss | None:
        """The same for one pattern."""
        given = self.way[-1].count(name)
        after = next((i for i in reversed(range(len(self.way) - 1)) if self.way[i].count(name) > given), None)
        if after is not None:
            return self._between(name, self.way[after], self.way[after + 1])
        better = next((rung for rung in reversed(self.eager) if rung.count(name) > given), None)
        if better is not None:
            label = DECOMPOSED if better.label == EAGER_DECOMPOSED else CAPTURED
            why = f"{name} is found {better.count(name)} times in {better.label}, {given} times in {label}"
            return Loss(Stage.CAPTURE, "Dynamo's capture", why, self._misses(label))
        return self._not_decomposed(name) if given == 0 else None

    def _between(self, name: str, before: Rung, after: Rung) -> Loss:
        why = f"{name} is found {before.count(name)} times in {before.label}, {after.count(name)} times after this step"
        step = after.label
        if after.label == DECOMPOSED:
            step = self._decomposition(name, after.count(name)) or "Inductor's decompositions"
        elif after.label == "AOTAutograd's graph":
            step = "AOTAutograd (functionalization, tracing of the joint graph)"
        if after.patterns:
            step += f" (pattern {', '.join(after.patterns)})"
        return Loss(after.stage, step, why, self._misses(after.label))

    def _misses(self, label: str) -> list[NearMiss]:
        return explain(self.subject, copied(self.graphs[label])) if label in self.graphs else []

    def _decomposition(self, name: str, found: int) -> str:
        """The decomposition without which the match is there."""
        table = dict(inductor.select_decompositions())
        called = {node.target for node in self.graphs[CAPTURED].graph.nodes if node.op == "call_function"}
        for op in sorted(called & table.keys(), key=str):
            without = {key: value for key, value in table.items() if key is not op}
            if self._traced("", None, self._captured, without).count(name) > found:
                return f"the decomposition of {op_name(op)}"
        return ""

    def _not_decomposed(self, name: str) -> Loss | None:
        """Would the pattern match if an op were decomposed that is not?"""
        if not self.subject.hook.aten or DECOMPOSED not in self.graphs:
            return None
        called = {node.target for node in self.graphs[DECOMPOSED].graph.nodes if node.op == "call_function"}
        for op in sorted(called, key=str):
            for decomposition in _decompositions(op):
                with _switched_on(op, decomposition) as table:
                    rung = self._traced("", None, self._captured, table)
                if rung.count(name):
                    why = f"{op_name(op)} is still in the decomposed graph; decomposed, {name} matches"
                    step = f"the decomposition of {op_name(op)} is not done"
                    return Loss(Stage.DECOMPOSITION, step, why, self._misses(HOOK))
        return None


@contextmanager
def _switched_on(op: Any, decomposition: Callable[..., Any]) -> Iterator[Table]:
    """Inductor's own table with this decomposition in it. It is the table itself, not a copy: the matcher traces a pattern by example anew
    for every candidate, by that table, and the graph and the pattern must be decomposed alike."""
    table = inductor.select_decompositions()
    absent = op not in table
    previous = table.get(op)
    table[op] = decomposition
    try:
        yield table
    finally:
        if absent:
            del table[op]
        else:
            table[op] = previous


def _decompositions(op: Any) -> list[Callable[..., Any]]:
    """The decompositions of an op that Inductor and torch know, whether they are in use or not."""
    tables = (inductor.select_decompositions(), seam.inductor_decompositions, seam.all_decompositions)
    return list(dict.fromkeys(table[op] for table in tables if op in table))


def _state(module: nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _origins(gm: fx.GraphModule) -> dict[str, str]:
    """Node → the op whose decomposition made it, of nodes that a decomposition made."""
    made = ((node, node.meta.get("original_aten")) for node in gm.graph.nodes)
    return {node.name: op_name(op) for node, op in made if op is not None and op is not node.target}


def _lean(gm: fx.GraphModule) -> fx.GraphModule:
    """Without calls that nothing uses: `detach`, sizes, asserts."""
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm
