"""One capture for several described GPUs.

Dynamo, AOTAutograd, the joint passes and the post-grad passes run once; lowering, scheduling and code generation run for each
target, on a copy of the graph that they left. A target shares what another one's compile made only where nothing was asked on
the way there that the two answer differently (`asked`): the kernel of an attention, say. Else it is compiled on its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import fx

from conformance import oracle
from conformance.backends.base import Case
from conformance.graphs import copied
from conformance.headless.device import answering, find, optional
from conformance.headless.device_queries import Asked, listening
from conformance.headless.kernel import Kernel
from conformance.micrograph import Micrograph
from conformance.target import Target

COMPILE = "torch._inductor.compile_fx"


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
        from conformance.backends.inductor.backend import InductorBackend
        from conformance.backends.inductor.compiled import empty_caches

        backend, case, capture = InductorBackend(), Case(micrograph, self.first), micrograph.contract.capture
        torch._dynamo.reset()
        with ExitStack() as stack:
            # Nothing is found there; a setting that turns caches off would be part of every kernel.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-"))
            stack.enter_context(empty_caches(Path(folder)))
            stack.enter_context(backend.settings(case))
            stack.enter_context(self._kernels_kept())
            if capture.graphs == 1 and not capture.breaks:  # else what is compiled next may depend on what was computed
                stack.enter_context(patch.object(Kernel, "run", lambda self, *args, **kwargs: None))
            if self.others:
                stack.enter_context(self._for_others())
            module = case.module()
            fn = backend.program(case, module)
            outcome = oracle.run(lambda *x: fn(*backend.marked(case, x)), case.inputs(0), module, calls=micrograph.steps)
        if outcome.error is not None and not self.found[self.first.name].kernels:
            raise outcome.error

    @contextmanager
    def _kernels_kept(self) -> Iterator[None]:
        wrapper = find("torch._inductor.codegen.wrapper.PythonWrapperCodegen")
        original = wrapper.define_kernel

        def define_kernel(owner: Any, kernel_name: str, kernel_body: str, *args: Any, **kwargs: Any) -> Any:
            kept = self.found[self.current].kernels if self.current in self.found else {}
            if "triton" in kernel_body:
                kept[kernel_name if kernel_name not in kept else f"{kernel_name} ({len(kept)})"] = kernel_body
            return original(owner, kernel_name, kernel_body, *args, **kwargs)

        with patch.object(wrapper, "define_kernel", define_kernel):
            yield

    @contextmanager
    def _for_others(self) -> Iterator[None]:
        """Each graph that Inductor compiles for the first target is generated for the others too."""
        module = find(COMPILE)
        original, passes = module.fx_codegen_and_compile, module._recursive_post_grad_passes
        heard = ExitStack()

        def fx_codegen_and_compile(gm: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            left: list[fx.GraphModule] = []

            def post_grad(gm: Any, *more: Any, **named: Any) -> Any:
                with patch.object(module, "_recursive_post_grad_passes", passes):
                    passes(gm, *more, **named)
                left.append(copied(gm))
                heard.close()  # from here on, each target is asked for itself

            with patch.object(module, "_recursive_post_grad_passes", post_grad):
                result = original(gm, example_inputs, *args, **kwargs)
            for target in self._agreeing():
                self._generate(target, lambda: original(copied(left[0]), example_inputs, *args, **kwargs))
            heard.enter_context(listening(self.asked))  # the next graph, if there is one
            return result

        heard.enter_context(listening(self.asked))
        with heard, patch.object(module, "fx_codegen_and_compile", fx_codegen_and_compile):
            yield

    def _agreeing(self) -> list[Target]:
        for target in self.others:
            if target.name in self.found and self.asked_apart(target.name):
                self.refused.add(target.name)
                del self.found[target.name]  # what was generated of it until now goes, too: it is compiled on its own
        return [target for target in self.others if target.name in self.found]

    def _generate(self, target: Target, codegen: Callable[[], Any]) -> None:
        with ExitStack() as stack:
            assert target.device is not None
            stack.enter_context(answering(target.device))
            for owner, name, value in _passed_already():
                stack.enter_context(patch.object(owner, name, value))
            self.current = target.name
            try:
                codegen()
            except Enough:
                pass
            finally:
                self.current = self.first.name


def _passed_already() -> list[tuple[Any, str, Any]]:
    """The steps before lowering, which the graph has behind it; and loading, which is not needed."""
    module = find(COMPILE)
    utils = find("torch._dynamo.utils")

    def stop(graph: Any) -> Any:
        graph.codegen()
        raise Enough

    steps: list[tuple[Any, str, Any]] = [
        (module, "view_to_reshape", lambda gm: None),
        (module, "fake_tensor_prop", lambda gm, example_inputs, *args: utils.detect_fake_mode(example_inputs)),
        (module, "_recursive_post_grad_passes", lambda gm, *args, **kwargs: None),
        (find("torch._inductor.graph.GraphLowering"), "compile_to_module", stop),
    ]
    strides = "_recursive_record_original_output_strides"
    if optional(f"{COMPILE}.{strides}") is not None:
        steps.append((module, strides, lambda gm: None))
    return steps
