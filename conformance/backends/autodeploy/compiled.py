"""One micrograph through AutoDeploy: exported, transformed stage by stage, run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from torch import fx

from conformance import oracle
from conformance.backends.autodeploy import fake_cuda, graph, plan, reference_kernels
from conformance.backends.autodeploy.capture import Captured, Unsupported, capture
from conformance.backends.autodeploy.inplace_hazards import lost_reads, overwritten
from conformance.backends.autodeploy.passes import Passes, PassResult
from conformance.backends.autodeploy.runtime import Chosen, compile_backend
from conformance.backends.autodeploy.stream_hazards import read_too_early
from conformance.backends.autodeploy.streams import multi_streamed
from conformance.backends.base import Case, Compiled
from conformance.backends.inductor.seam import seam as inductor
from conformance.checks.measured import (
    PASS_INPLACE_ORDER,
    PASS_LOG,
    PASS_MATCHES,
    PASS_METADATA,
    PASS_RAISES,
    PASS_STREAMS,
    PASS_WRONG_METADATA,
)
from conformance.errors import first_line
from conformance.replay import REPLAYS
from conformance.stage import Stage
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

GRAPH_STAGES = (Stage.CAPTURE, Stage.DECOMPOSITION, Stage.POSTGRAD, Stage.FUSION, Stage.CODEGEN)


class AutoDeployCompiled(Compiled):
    """`option` is the choice of kernels that is run; the graphs of all options are looked at."""

    def __init__(self, passes: Passes, case: Case, option: str = "", refused: Mapping[str, str] | None = None) -> None:
        """refused   options whose kernels did not take this case, and why: this one was chosen for lack of them"""
        self.passes, self.case = passes, case
        self.option = option or plan.runnable(case.target)[0]
        self.refused = dict(refused or {})
        self.refusal = ""  # why the kernels of this option do not take this case
        self._chosen: Chosen | None = None
        self._overwritten: list[int] = []  # inputs that a fused kernel writes into, though the program does not
        self._module = case.module()
        self._graphs: dict[Stage, fx.GraphModule] = {}
        self._variants: dict[str, fx.GraphModule] = {}  # option → its last graph
        self._seen: dict[Stage, Observation] = {}
        self._error: BaseException | None = None
        self._program: Callable[..., Any] | None = None
        self._compile()

    # ------------------------------------------------------------------------------------------- the compile

    def _compile(self) -> None:
        with self._stage(Stage.CAPTURE) as seen:
            captured = capture(self.passes.loaded, self.case, self._module)
            self._keep(Stage.CAPTURE, captured.gm)
            seen.facts.update(capture_facts(captured))
            gm = captured.gm
        if self._error:
            return
        config = plan.configured(self.passes.loaded, self.option)
        gm = self._transform(Stage.DECOMPOSITION, gm, config)
        if self._error:
            return
        self._seen[Stage.DECOMPOSITION].facts["mutating"] = graph.mutating(gm)
        twins = {option: graph.copied(gm) for option in plan.OPTIONS if option != self.option}
        for stage in (Stage.POSTGRAD, Stage.FUSION, Stage.CODEGEN):
            gm = self._transform(stage, gm, config)
            if self._error:
                return
            self._look_at_options(stage, twins)
            if stage is Stage.POSTGRAD:  # here AutoDeploy loads weights
                for graph_module in (gm, *twins.values()):
                    self.passes.moved(graph_module, self.case.run_device)
        self._variants = {self.option: gm, **twins}
        self._choose_kernels()

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[Observation]:
        """What goes wrong inside is the stage's, and ends the compile."""
        seen = self._seen.setdefault(stage, Observation())
        started = time.perf_counter()
        try:
            yield seen
        except Unsupported as error:
            self._error = error
            seen.verdict, seen.reason = Verdict.UNSUPPORTED, str(error)
        except Exception as error:
            self._error = error
            seen.verdict, seen.reason = Verdict.ERROR, first_line(error)
            seen.findings.append(Finding(Kind.CRASH, PASS_RAISES, first_line(error)))
        seen.seconds += time.perf_counter() - started

    def _transform(self, stage: Stage, gm: fx.GraphModule, config: dict[str, dict[str, Any]]) -> fx.GraphModule:
        with self._stage(stage) as seen:
            seen.texts["before"] = graph.listing(gm)
            gm, results = self.passes.run(gm, plan.of_stage(config, stage))
            seen.texts["after"] = graph.listing(gm)
            for result in results:
                if result.changed:
                    seen.texts[f"after {result.name}"] = result.after
            matches = {r.name: r.matches for r in results if r.state in ("ran", "skipped")}
            seen.facts["passes"] = {r.name: r.fact() for r in results}
            seen.facts["matches"] = plan.words(matches)
            seen.facts["kept" if stage is Stage.DECOMPOSITION else "ops"] = graph.op_counts(gm)  # it decomposes nothing
            judge(seen, results)
            if seen.verdict is Verdict.ERROR:
                self._error = RuntimeError(seen.reason)
            self._keep(stage, gm)
        return gm

    def _look_at_options(self, stage: Stage, twins: dict[str, fx.GraphModule]) -> None:
        """The same passes with the other choices of kernels: graphs only, since not all of them run here."""
        seen = self._seen[stage]
        with self._stage(stage):
            matched = {name: said["matches"] for name, said in seen.facts["passes"].items()}
            seen.facts["options"] = {
                self.option: self._option_facts(self._graphs[stage], seen.facts["matches"], matched)
            }
            known = {node.name for node in self._graphs[Stage.CAPTURE].graph.nodes}
            self._no_lost_reads(seen, self._graphs[stage], self.option, known)
            for option, gm in twins.items():
                config = plan.of_stage(plan.configured(self.passes.loaded, option), stage)
                twins[option], results = self.passes.run(gm, config)
                self._no_lost_reads(seen, twins[option], option, known)
                matches = plan.words({r.name: r.matches for r in results if r.state in ("ran", "skipped")})
                seen.facts["options"][option] = self._option_facts(
                    twins[option], matches, {r.name: r.matches for r in results}
                )
                seen.texts[f"after, {option}"] = graph.listing(twins[option])
                judge(seen, results, option)
            # A rewrite that only exists for some kernels was found if any option found it.
            for facts in seen.facts["options"].values():
                for word, count in facts["matches"].items():
                    seen.facts["matches"][word] = max(count, seen.facts["matches"].get(word, 0))
            if stage is Stage.FUSION:
                self._hold_to_contract(seen)

    def _no_lost_reads(self, seen: Observation, gm: fx.GraphModule, option: str, known: set[str]) -> None:
        for lost in lost_reads(gm, known):
            seen.findings.append(Finding(Kind.WRONG_RESULT, PASS_INPLACE_ORDER, f"{lost} ({option} kernels)"))

    def _hold_to_contract(self, seen: Observation) -> None:
        """The contract's counts of rewrites that AutoDeploy makes when it fuses, not when it matches patterns."""
        for word, promised in self.case.micrograph.contract.postgrad.matches.items():
            count = seen.facts["matches"].get(word, promised)
            if count != promised:
                kind = Kind.MATCH_LOSS if count < promised else Kind.OVERFUSED
                seen.findings.append(
                    Finding(kind, PASS_MATCHES, f"{word} matched {count} times, contract says {promised}")
                )

    def _option_facts(self, gm: fx.GraphModule, matches: dict[str, int], passes: dict[str, int]) -> dict[str, Any]:
        matched = {name: count for name, count in passes.items() if count}
        return {"matches": dict(matches), "passes": matched, "custom_ops": graph.custom_ops(gm)}

    def _choose_kernels(self) -> None:
        """What the graph will call for each option, and the program that the compile backend makes of it."""
        with self._stage(Stage.CODEGEN) as seen:
            seen.facts["kernels"] = {option: graph.custom_ops(gm) for option, gm in self._variants.items()}
            seen.facts["option"] = self.option
            if self.refused:
                seen.facts["refused"] = self.refused
            seen.texts["code"] = self._graphs[Stage.CODEGEN].code
            self.refusal = self._refusal() if self.option != plan.runnable(self.case.target)[-1] else ""
            if self.refusal:
                return
            chosen = self._made()
            seen.facts["compile_backend"] = chosen.name
            self._program = self._callable(chosen.program)
            if chosen.recorded:
                self.replays, self.outputs_persist = REPLAYS, False
            self._chosen = chosen
            self._seen[Stage.CACHE] = chosen.cache

    def _refusal(self) -> str:
        """Kernels of a GPU may not take the dtype, or not be built: seen by calling the graph once."""
        if self.case.target.name != "cuda" or not graph.custom_ops(self._graphs[Stage.CODEGEN]):
            return ""
        outcome = oracle.run(self._callable(self._graphs[Stage.CODEGEN]), self.case.inputs(0), self._module)
        return first_line(outcome.error) if outcome.error is not None else ""

    def _made(self, name: str = "", gm: fx.GraphModule | None = None) -> Chosen:
        gm = graph.copied(gm or self._graphs[Stage.CODEGEN])
        return compile_backend(self.passes.loaded, gm, self.case, name, self._module)

    def _runtime(self) -> Observation:
        """Asked for after the first call."""
        chosen = self._chosen
        if chosen is None:
            return Observation.says(Verdict.BLOCKED, "an earlier stage failed")
        seen = Observation(facts={"compile_backend": chosen.name, "option": self.option})
        if chosen.fallback:
            seen.verdict, seen.reason = Verdict.FALLBACK, f"no CUDA graph: {chosen.fallback}"
        elif chosen.plain:
            seen.verdict, seen.reason = (
                Verdict.FALLBACK,
                "the recording was not used for the sizes that it was made for",
            )
        elif self.refused:
            said = "; ".join(f"{option} kernels: {why}" for option, why in self.refused.items())
            seen.verdict, seen.reason = Verdict.FALLBACK, f"ran with {self.option} kernels; {said}"
        return seen

    def _keep(self, stage: Stage, gm: fx.GraphModule) -> None:
        self._graphs[stage] = self.passes.moved(graph.copied(gm), self.case.run_device)

    def _callable(self, program: Callable[..., Any]) -> Callable[..., Any]:
        def call(*inputs: Any) -> Any:
            with self.passes.loaded.active(), fake_cuda.answers():
                return program(*inputs)

        return call

    # --------------------------------------------------------------------------------------------- the answers

    def __call__(self, *inputs: Any) -> Any:
        if self._program is None:
            raise self._error or RuntimeError("AutoDeploy made no program")
        return self._program(*inputs)

    def execution_contexts(self) -> Mapping[str, Callable[[], AbstractContextManager[Any]]]:
        """The other compile backends, and work on two streams: each must give the same. Without a GPU no other way runs, and
        the graph for two streams is looked at."""
        if self._chosen is None:
            return {}
        streamed, matched = self._for_two_streams()
        if self.case.target.name != "cuda":
            return {}
        known = {node.name for node in self._graphs[Stage.CAPTURE].graph.nodes}
        self._overwritten = overwritten(self._graphs[Stage.CODEGEN], known)
        self._seen[Stage.RUNTIME].facts["overwrites"] = [f"input {index}" for index in self._overwritten]
        ways = {"torch-compile": partial(self._through, "torch-compile")}
        if self._chosen.recorded:
            ways["torch-simple"] = partial(self._through, "torch-simple")
        if matched:
            ways["multi-stream, torch-simple"] = partial(self._through, "torch-simple", streamed)
            if self._chosen.recorded:
                ways["multi-stream, torch-cudagraph"] = partial(self._through, "torch-cudagraph", streamed)
        return ways

    def _for_two_streams(self) -> tuple[fx.GraphModule, bool]:
        """The graph with work on a second stream, and whether there is any."""
        seen = self._seen[Stage.RUNTIME]
        streamed, results = multi_streamed(self.passes, self._graphs[Stage.CODEGEN])
        matches = {result.name: result.matches for result in results if result.state == "ran"}
        seen.facts["multi_stream"] = matches
        raised = [f"{result.name} failed: {result.reason}" for result in results if result.state == "failed"]
        seen.findings.extend(Finding(Kind.CRASH, PASS_RAISES, said) for said in raised)
        seen.findings.extend(Finding(Kind.WRONG_RESULT, PASS_STREAMS, said) for said in read_too_early(streamed))
        return streamed, any(matches.values())

    def variants(self) -> Mapping[str, Callable[..., Any]]:
        """The graphs of the other choices of kernels, with what these kernels compute in plain PyTorch."""
        programs = {
            option: reference_kernels.program(gm) for option, gm in self._variants.items() if option != self.option
        }
        return {option: self._callable(program) for option, program in programs.items() if program is not None}

    @contextmanager
    def _through(self, name: str, gm: fx.GraphModule | None = None) -> Iterator[None]:
        """While this is on, a call goes through another compile backend. It compiles at the call, whose errors are
        looked at."""
        kept = self._program
        made: list[Any] = []

        def call(*inputs: Any) -> Any:
            if not made:
                made.append(self._made(name, gm))
                if made[0].fallback:
                    raise RuntimeError(f"{name}: {made[0].fallback}")
            copies = oracle.clone_inputs(
                inputs
            )  # AutoDeploy feeds a graph from buffers of its own, which fused kernels overwrite
            given = [copies[i] if i in self._overwritten else x for i, x in enumerate(inputs)]
            return self._callable(made[0].program)(*given)

        self._program = call
        random = self.case.micrograph.contract.runtime.random
        try:
            with inductor.config.patch(fallback_random=random, shape_padding=False):  # no stopwatch decides
                yield
        finally:
            self._program = kept
            if name == "torch-compile":
                inductor.reset()

    def observe(self, stage: Stage) -> Observation:
        if stage is Stage.RUNTIME and stage not in self._seen:
            self._seen[stage] = self._runtime()
        return self._seen.get(stage) or Observation.says(Verdict.BLOCKED, "an earlier stage failed")

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        if stage in self._graphs:
            return self._callable(self._graphs[stage])
        return self._program if stage in (Stage.RUNTIME, Stage.CACHE) else None

    @property
    def module(self) -> Any:
        return self._module

    def blame(self, error: BaseException) -> Stage:
        failed = [stage for stage in GRAPH_STAGES if self._seen.get(stage, Observation()).verdict is not None]
        return failed[0] if failed else Stage.RUNTIME

    def close(self) -> None:
        self._graphs.clear()
        self._variants.clear()
        self._program = self._chosen = None


def capture_facts(captured: Captured) -> dict[str, Any]:
    return {
        "ops": graph.op_counts(captured.gm),
        "dynamic": captured.dynamic,
        "specialized": captured.specialized,
    }


def judge(seen: Observation, results: list[PassResult], option: str = "") -> None:
    """What the transforms of a stage did wrong, whatever the contract says."""
    where = f" ({option} kernels)" if option else ""
    for result in results:
        if result.state == "failed":
            verdict = Verdict.FALLBACK if result.tolerated else Verdict.ERROR
            said = f"{result.name}{where} failed: {result.reason}"
            if seen.verdict is None or (verdict is Verdict.ERROR and seen.verdict is Verdict.FALLBACK):
                seen.verdict, seen.reason = verdict, said
            if verdict is Verdict.ERROR:  # a fallback is no crash: AutoDeploy went on
                seen.findings.append(Finding(Kind.CRASH, PASS_RAISES, said))
        if result.lost_metadata and result.name not in plan.SHAPES_LATER:
            detail = f"{result.name}{where} made {', '.join(result.lost_metadata)} without shape and dtype"
            seen.findings.append(Finding(Kind.METADATA_LOSS, PASS_METADATA, detail))
        for wrong in result.wrong_metadata:
            seen.findings.append(Finding(Kind.METADATA_LOSS, PASS_WRONG_METADATA, f"{result.name}{where}: {wrong}"))
        if result.log_disagrees:
            reported = result.matches if result.state == "ran" else result.state
            detail = f"{result.name}{where} logs {result.logged}, and reports {reported}"
            seen.findings.append(Finding(Kind.MATCH_LOSS, PASS_LOG, detail))
