"""One capture for several described GPUs.

Dynamo, AOTAutograd, the joint passes and the post-grad passes run once; lowering, scheduling and code generation run
for each target, on a copy of the graph that they left. A target shares what another one's compile made only where
nothing was asked on the way there that the two answer differently (`device_queries`): the kernel of an attention, say.
Else it is compiled on its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import fx

from conformance import oracle
from conformance.backends.base import Case
from conformance.backends.inductor.seam import seam as inductor
from conformance.graphs import copied
from conformance.headless.device import asking
from conformance.headless.device_queries import Asked, listening
from conformance.headless.program import Program
from conformance.micrograph import Micrograph
from conformance.target import Target

Proceed = Callable[..., Any]


class Enough(Exception):
    """The source was generated: a second target's program is not loaded."""


@dataclass
class Generated:
    """What Inductor generated for one target."""

    kernels: dict[str, str] = field(default_factory=dict)  # name → source, in order
    shares: str = ""  # the target whose capture … post-grad it shares; "" when it has its own
    apart: list[str] = field(default_factory=list)  # the questions for which it could not share another's


def generate(micrograph: type[Micrograph], targets: Sequence[Target], share: bool = True) -> dict[str, Generated]:
    """The kernels for each target, with as few captures as their answers allow."""
    done: dict[str, Generated] = {}
    waiting = list(targets)
    refused: dict[str, list[str]] = {}
    while waiting:
        first, *others = waiting
        family = Family(first, others if share else [])
        family.compile(micrograph)
        for name, generated in family.found.items():
            generated.apart = refused.get(name, [])
            done[name] = generated
        refused |= {name: family.asked_apart(name) for name in family.refused}
        waiting = [target for target in waiting if target.name not in family.found]
    return {target.name: done[target.name] for target in targets}


class Family:
    """One compile for a target, and code generation for those that can share its way there."""

    def __init__(self, first: Target, others: Sequence[Target]) -> None:
        self.first, self.others = first, list(others)
        self.found = {t.name: Generated(shares="" if t is first else first.name) for t in (first, *others)}
        self.refused: set[str] = set()
        self.asked = Asked()
        self.current = first.name

    def asked_apart(self, name: str) -> list[str]:
        return self.asked.apart(self.first.name, name)

    def compile(self, micrograph: type[Micrograph]) -> None:
        # What is compiled after a graph break may depend on what was computed before it.
        capture = micrograph.contract.capture
        launches = capture.graphs != 1 or (capture.breaks or 0) > 0
        outcome = self._compiled(micrograph, launches)
        if outcome.error is not None and not launches and self.first.headless:
            # A library call may refuse memory that no kernel wrote: once more, with every kernel run.
            before = {name: dict(generated.kernels) for name, generated in self.found.items()}
            for generated in self.found.values():
                generated.kernels.clear()
            again = self._compiled(micrograph, True)
            if again.error is not None:
                for name, generated in self.found.items():
                    generated.kernels = before[name]
            else:
                outcome = again
        if outcome.error is not None and not self.found[self.first.name].kernels:
            raise outcome.error

    def _compiled(self, micrograph: type[Micrograph], launches: bool) -> oracle.Outcome:
        from conformance.backends.inductor.backend import InductorBackend
        from conformance.backends.inductor.compiled import empty_caches

        backend, case = InductorBackend(), Case(micrograph, self.first)
        inductor.reset()
        with ExitStack() as stack:
            # Nothing is found there; a setting that turns caches off would be part of every kernel.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-"))
            stack.enter_context(empty_caches(Path(folder)))
            stack.enter_context(backend.settings(case))
            stack.enter_context(inductor.subscribe(define_kernel=self._keep_kernel))
            if self.others:
                stack.enter_context(self._for_others())
            module = case.module()
            fn = backend.program(case, module)
            if isinstance(fn, Program):
                fn.launches = launches
            steps = micrograph.steps
            return oracle.run(lambda *x: fn(*backend.marked(case, x)), case.inputs(0), module, calls=steps)

    def _keep_kernel(
        self, proceed: Proceed, wrapper: Any, kernel_name: str, kernel_body: str, *args: Any, **kwargs: Any
    ) -> Any:
        kept = self.found[self.current].kernels if self.current in self.found else {}
        if "triton" in kernel_body:
            kept[kernel_name if kernel_name not in kept else f"{kernel_name} ({len(kept)})"] = kernel_body
        return proceed(wrapper, kernel_name, kernel_body, *args, **kwargs)

    @contextmanager
    def _for_others(self) -> Iterator[None]:
        """Each graph that Inductor compiles for the first target is generated for the others too."""
        heard = ExitStack()
        left: list[fx.GraphModule] = []  # the graph after the post-grad passes
        depth = [0]  # of the post-grad passes, which call themselves for subgraphs

        def post_grad(proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
            depth[0] += 1
            try:
                result = proceed(gm, *args, **kwargs)
            finally:
                depth[0] -= 1
            if not depth[0]:
                left.append(copied(gm))
                heard.close()  # from here on, each target is asked for itself
            return result

        def compile_graph(proceed: Proceed, gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            left.clear()
            with inductor.subscribe(post_grad_passes=post_grad):
                result = proceed(gm, example_inputs, *args, **kwargs)
            for target in self._agreeing():
                self._generate(target, lambda: proceed(copied(left[0]), example_inputs, *args, **kwargs))
            heard.enter_context(listening(self.asked))  # the next graph, if there is one
            return result

        heard.enter_context(listening(self.asked))
        with heard, inductor.subscribe(codegen_and_compile=compile_graph):
            yield

    def _agreeing(self) -> list[Target]:
        for target in self.others:
            if target.name in self.found and self.asked_apart(target.name):
                self.refused.add(target.name)
                del self.found[target.name]  # what was generated of it until now goes, too: it is compiled on its own
        return [target for target in self.others if target.name in self.found]

    def _generate(self, target: Target, codegen: Callable[[], Any]) -> None:
        assert target.device is not None
        with asking(target.device), _from_lowering_on():
            self.current = target.name
            try:
                codegen()
            except Enough:
                pass
            finally:
                self.current = self.first.name


@contextmanager
def _from_lowering_on() -> Iterator[None]:
    """Inside, the steps before lowering, which the graph has behind it, do nothing; and the program is generated and
    not loaded."""

    def nothing(proceed: Proceed, *args: Any, **kwargs: Any) -> None:
        return None

    def known_mode(proceed: Proceed, gm: Any, example_inputs: Any, *args: Any) -> Any:
        return inductor.detect_fake_mode(example_inputs)

    def stop(proceed: Proceed, graph: Any) -> Any:
        graph.codegen()
        raise Enough

    steps: dict[str, Any] = dict.fromkeys(("view_to_reshape", "post_grad_passes", "record_output_strides"), nothing)
    steps |= {"fake_tensor_prop": known_mode, "load_program": stop}
    with inductor.subscribe(**{key: step for key, step in steps.items() if inductor.has(key)}):
        yield
