"""The rungs of Inductor's ladder, and the culprit inside each stage, by leaving steps out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from conformance.backends.inductor import repro
from conformance.backends.inductor.backend import InductorBackend
from conformance.backends.inductor.kernel_store import kernel_store
from conformance.backends.inductor.triage.holder import OTHER_BACKENDS, holding, is_held
from conformance.stage import Stage
from conformance.target import Target
from conformance.triage.ablation import Ablation, Step
from conformance.triage.adapter import Adapter
from conformance.triage.culprit import Culprit
from conformance.triage.ending import Ending
from conformance.triage.hold import Hold, Journal
from conformance.triage.ladder import Climb, Rung
from conformance.triage.runs import Runs
from conformance.triage.subject import Subject

RUNGS = (
    Rung("eager", None, "torch.compile does nothing"),
    Rung("captured", Stage.CAPTURE, "Dynamo's graphs run"),
    Rung("traced", Stage.DECOMPOSITION, "AOTAutograd's graphs run, nothing decomposed"),
    Rung("decomposed", Stage.DECOMPOSITION, "the same with Inductor's decompositions"),
    Rung("passed", Stage.POSTGRAD, "the graphs after all graph passes run"),
    Rung("unfused", Stage.CODEGEN, "generated code, nothing fused, no caches", costly=True),
    Rung("program", Stage.FUSION, "generated code as usual, no caches, called directly", costly=True),
    Rung("uncached", Stage.RUNTIME, "the same, called as usual", costly=True),
    Rung("whole", Stage.CACHE, "everything, with empty caches at the start", costly=True),
)
# Parts of code generation that a setting turns off.
CODE_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("vectorized C++", {"inductor.cpp.simdlen": 1}),
    ("reuse of buffers", {"inductor.allow_buffer_reuse": False, "inductor.inplace_buffers": False}),
    ("vectorized tails of loops", {"inductor.cpp.enable_loop_tail_vec": False}),
    ("intermediate precision", {"inductor.emulate_precision_casts": True}),
    ("contraction to fused multiply-add", {"inductor.cpp.enable_floating_point_contract_flag": "off"}),
    ("unsafe math flags of the C++ compiler", {"inductor.cpp.enable_unsafe_math_opt_flag": False}),
    ("padding of strides", {"inductor.comprehensive_padding": False}),
    ("layout optimization", {"inductor.layout_optimization": False}),
    ("splitting of reductions", {"inductor.split_reductions": False}),
    ("choice of loop orders", {"inductor.pick_loop_orders": False, "inductor.loop_ordering_after_fusion": False}),
    ("propagation of constants into indices", {"inductor.constant_and_index_propagation": False}),
)
FUSION_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("of scheduled nodes", {"inductor.max_fusion_size": 1}),
    ("by inlining in lowering", {"inductor.realize_opcount_threshold": 0}),
)
TRACE_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("activation memory budget (recomputation in the partitioner)", {"functorch.activation_memory_budget": 1.0}),
    ("common subexpression elimination", {"functorch.cse": False}),
)
FEW_OPS = 4
SIBLINGS = 4  # patterns of one kind that match in place of each other
NOT_EXPORTED = (  # for what torch.export captures wrongly
    "import torch",
    'torch.export.export = lambda program, *_, **__: type("Program", (), {"module": lambda self: program})()',
)
RANDOM = {"inductor.fallback_random": True}


def afresh_at(rung: str) -> Hold:
    """Every call is compiled afresh, so that no guard decides."""
    return Hold(rung).without("guards")


@contextmanager
def hold(held: Hold, journal: Journal) -> Iterator[None]:
    """Hold every compile inside; C++ that was compiled before is not compiled again."""
    with kernel_store(), holding(held, journal):
        yield


class InductorAdapter(Adapter):
    """How Inductor is triaged."""

    rungs = RUNGS

    def prepare(self) -> None:
        InductorBackend().preload(Target.parse("cpu"))

    def hold(self, held: Hold, journal: Journal) -> AbstractContextManager[None]:
        return hold(held, journal)

    def stage(self, runs: Runs, subject: Subject, climb: Climb) -> tuple[Stage | None, str]:
        rung = climb.first_failing
        if rung is None or rung.stage in (None, Stage.CAPTURE, Stage.CACHE):
            return (rung.stage if rung is not None else None), ""
        used = {event["backend"] for event in climb.endings[rung.name].named("graph")}
        others = sorted(name for name in used if not is_held(name))
        if others and runs(subject, Hold(rung.name).without(OTHER_BACKENDS))[0].right:
            return None, f"Dynamo's graphs are right; it fails in the backend {', '.join(others)}, which is not held"
        if called_once(climb.endings[rung.name]):
            return rung.stage, ""
        afresh = runs(subject, afresh_at(rung.name))[0]
        if afresh.right and (not rung.costly or stale(climb.endings[rung.name], afresh)[1]):
            return Stage.CAPTURE, f"{rung.name}: right when every call is compiled afresh"
        return rung.stage, ""

    def culprit(self, runs: Runs, subject: Subject, climb: Climb, stage: Stage) -> Culprit:
        return Culprits(runs, subject, climb).of(stage)

    def cures(self, stage: Stage, culprit: Culprit | None) -> list[tuple[str, ...]]:
        found = repro.cures(stage, culprit.steps if culprit is not None else [])
        return [*found, NOT_EXPORTED] if stage is Stage.CAPTURE else found


class Culprits:
    """Names what is at fault inside a stage."""

    def __init__(self, runs: Runs, subject: Subject, climb: Climb) -> None:
        self.runs, self.subject, self.climb = runs, subject, climb

    def of(self, stage: Stage) -> Culprit:
        find = {
            Stage.CAPTURE: self._capture,
            Stage.DECOMPOSITION: self._decomposition,
            Stage.POSTGRAD: self._passes,
            Stage.FUSION: self._fusion,
            Stage.CODEGEN: self._code,
            Stage.CACHE: self._cache,
            Stage.RUNTIME: self._runtime,
        }
        return find[stage]()

    def _at(self, rung: str) -> Ablation:
        return Ablation(self.runs, self.subject, Hold(rung))

    def _recorded(self, rung: str) -> Ending:
        """The run at a rung once more, with its steps written down."""
        return self.runs(self.subject, Hold(rung).recording("steps"))[0]

    # ----------------------------------------------------------------------------------------------- capture

    def _capture(self) -> Culprit:
        failing = self.climb.first_failing
        rung = failing.name if failing is not None else "captured"
        usual = self.runs(self.subject, Hold(rung))[0]
        afresh = usual if called_once(usual) else self.runs(self.subject, afresh_at(rung))[0]
        if afresh.right:
            what, line = stale(usual, afresh)
            why = f"the script is right when every call is compiled afresh: {what}"
            return Culprit("guard", line or "missing", why, steps=[Step("guard", "guards", "guards")])
        if usual.kind in ("crash", "signal", "hang"):
            return Culprit("capture", self.subject.line_text(usual.line) or "Dynamo", usual.told())
        places = [place for graph in usual.named("graph") for _, place in graph.get("calls", ())]
        lines = [place for place in places if place.partition(": ")[2].strip()]
        file = getattr(self.subject, "path", None)
        own = [place for place in lines if file is not None and place.startswith(f"{file.name}:")]
        lines = own or lines
        return Culprit("capture", lines[-1] if lines else "Dynamo", "Dynamo's graph, run as it is, is wrong already")

    # ----------------------------------------------------------------------------------------- decomposition

    def _decomposition(self) -> Culprit:
        if self.climb.state("traced") == "right":
            return self._by_steps("decomposed", "decomposition", "decomposition")
        settings = [Step("setting", "", name, settings=tuple(values.items())) for name, values in TRACE_SETTINGS]
        if (step := self._at("traced").single(settings)) is not None:
            return Culprit("partitioner", step.name, "the script is right without it", steps=[step])
        raised = next(iter(self.climb.endings["traced"].named("raised")), None)
        if raised is not None:
            return Culprit("tracing", "AOTAutograd", raised["error"])
        return Culprit("tracing", "AOTAutograd", "its graph, run without decompositions and passes, is wrong already")

    def _by_steps(self, rung: str, kind: str, what: str) -> Culprit:
        """The steps of one kind without which the subject is right."""
        steps = steps_of(self._recorded(rung), kind)
        ablation = self._at(rung)
        single = ablation.single(steps, self.runs.workers)
        found = [single] if single is not None else ablation.smallest(steps)
        if not found:
            return Culprit(
                what, "not found", f"none of {len(steps)} {kind}s alone, nor all of them, is what makes it fail"
            )
        names = list(dict.fromkeys(step.name for step in found))
        number = "" if found[0].key == f"{kind} {found[0].name}" else f"{found[0].key}, "
        return Culprit(
            what,
            ", ".join(names),
            f"the script is right without it ({number}on graph {found[0].graph})",
            names,
            steps=found,
        )

    # ---------------------------------------------------------------------------------------------- postgrad

    def _passes(self) -> Culprit:
        joint, random = self.runs(self.subject, Hold("joint"), Hold("passed").having(RANDOM))
        if random.right:
            step = Step("setting", "", "fallback_random", settings=tuple(RANDOM.items()))
            return Culprit("random numbers", "replace_random", "the script is right with fallback_random", steps=[step])
        rung = "passed" if joint.right else "joint"
        found = self._by_steps(rung, "pass", "pass")
        if found.name == "not found":
            return self._by_steps(rung, "pattern", "pattern")
        return self._pattern_of(rung, found)

    def _pattern_of(self, rung: str, found: Culprit) -> Culprit:
        """The patterns inside a pass without which the script is right. Where one is left out, a sibling may match in
        its place: that is left out, too."""
        passes = {step.name for step in found.steps}
        off: dict[str, Step] = {}
        ablation = self._at(rung)
        for _ in range(SIBLINGS):
            ending = self.runs(self.subject, ablation.without(off.values()).recording("steps"))[0]
            matched = {
                name for step in steps_of(ending, "pass") if step.name in passes for name in step.detail.split(", ")
            }
            new = {name: Step("pattern", f"pattern {name}", name) for name in matched if name and name not in off}
            if ending.right or not new or self.runs.late():
                break
            off |= new
        names = [step.name for step in ablation.smallest([*off.values()])]
        if 0 < len(names) <= SIBLINGS:
            found.what, found.name = "pattern", f"{', '.join(names)} (in {found.name})"
        return found

    # ----------------------------------------------------------------------------------------- fusion, codegen

    def _code(self) -> Culprit:
        if (raises := self._raises()) is not None:
            return raises
        named = self._by_steps("unfused", "lowering", "lowering")
        if named.steps:
            return named
        settings = [Step("setting", "", name, settings=tuple(values.items())) for name, values in CODE_SETTINGS]
        step = self._at("unfused").single(settings, self.runs.workers, len(settings))
        if step is None:
            return self._lowered_ops(named)
        return Culprit("code", step.name, "the script is right without it", steps=[step])

    def _raises(self) -> Culprit | None:
        """The op whose lowering raises, where torch says which."""
        ending = self.climb.endings.get("unfused") or self.climb.given
        raised = next((event for event in ending.named("raised") if event.get("target")), None)
        if ending.kind != "crash" or raised is None:
            return None
        step = Step("lowering", f"lowering {raised['target']}", raised["target"], raised["graph"])
        cured = self._at("unfused").cures([step])[0]
        why = "the script is right without it" if cured else f"it raises {raised['error']}"
        return Culprit("lowering", step.name, why, [step.name], steps=[step] if cured else [])

    def _lowered_ops(self, unnamed: Culprit) -> Culprit:
        """Where nothing that is left out makes the subject right, the few ops that code is generated for are named: the
        layout of an output, for one, is chosen for an op that ATen computes as well."""
        ops = list(dict.fromkeys(step.name for step in steps_of(self._recorded("unfused"), "lowering")))
        if not 0 < len(ops) <= FEW_OPS:
            return unnamed
        which = "the only op" if len(ops) == 1 else "the only ops"
        why = f"{which} that code is generated for; it fails, too, where ATen computes the values"
        return Culprit("lowering", ", ".join(ops), why, ops)

    def _fusion(self) -> Culprit:
        settings = [Step("setting", "", name, settings=tuple(values.items())) for name, values in FUSION_SETTINGS]
        single = self._at("program").single(settings)
        named = self._by_steps("program", "fusion", "fusion")
        found = [single] if single is not None else self._at("program").smallest(settings) if not named.steps else []
        if named.steps or not found:
            return named
        ops = list(dict.fromkeys(step.name for step in steps_of(self._recorded("program"), "lowering")))
        of = f": {', '.join(ops)}" if 0 < len(ops) <= FEW_OPS else ""
        name = f"{' and '.join(step.name for step in found)}{of}"
        return Culprit("fusion", name, "the script is right without it", ops if of else [], steps=found)

    # --------------------------------------------------------------------------------------- cache and runtime

    def _cache(self) -> Culprit:
        caches = sorted({event["cache"] for event in self.climb.endings["whole"].named("cache") if event["hit"]})
        steps = [Step("cache", f"cache {name}", name) for name in caches]
        step = self._at("whole").single(steps)
        name = step.name if step else ", ".join(caches) or "unknown"
        return Culprit("cache", name, "the script is right when nothing is taken from it", steps=[step] if step else [])

    def _runtime(self) -> Culprit:
        return Culprit("runtime", "what calls the generated program", "the script is right when it is called directly")


def steps_of(ending: Ending, kind: str) -> list[Step]:
    """The steps of a kind that a run wrote down."""
    return [
        Step(kind, event["key"], event["name"], event["graph"], ", ".join(event.get("patterns", ())))
        for event in ending.named("step")
        if event["kind"] == kind
    ]


def called_once(ending: Ending) -> bool:
    """Was there one call of something compiled? Then everything was compiled for it, and no guard decided."""
    return len(ending.named("call")) == 1


def stale(usual: Ending, afresh: Ending) -> tuple[str, str]:
    """What a graph that was captured afresh has, and none of those that were captured when guards decide: the call
    and its line."""
    known = {call for event in usual.named("graph") for call, _ in event.get("calls", ())}
    for event in afresh.named("graph"):
        for call, place in event.get("calls", ()):
            if call not in known:
                return f"then it has {call}", place
    return "what it reads is not guarded", ""
