"""Inductor for a GPU that is described and not present: kernels for that GPU, run by interpretation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import fx, nn

from conformance.backends.inductor.seam import seam as inductor
from conformance.headless.program import Program
from conformance.ops.call import Call, program
from conformance.ops.rung import Compile, externs_by_call, fresh, taken
from conformance.stage import Stage
from conformance.target import Target


class Described:
    """The whole program for a described GPU. Interpreting is slow, so that a compile takes few calls."""

    stage, width = Stage.RUNTIME, 16

    def __init__(self, target: Target) -> None:
        self.target = target

    def eager(self, module: nn.Module) -> Callable[..., Any]:
        """Eager on that device: what a compile is held against."""
        return Program(module, self.target, compiled=False)

    @contextmanager
    def compile(self, calls: Sequence[Call], whole: bool = True) -> Iterator[Compile]:
        made = Compile(lambda: None)

        def captured(proceed: Callable[..., Any], gm: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(gm, fx.GraphModule) and not made.inputs:
                made.inputs = taken(gm)
            return proceed(gm, *args, **kwargs)

        def schedule(proceed: Callable[..., Any], scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if whole and not made.externs:
                made.externs, made.kernels = externs_by_call(scheduler, calls, made.inputs)
            return proceed(scheduler, *args, **kwargs)

        with (
            fresh(),
            inductor.config.patch(shape_padding=False),
            inductor.subscribe(compile_fx=captured, schedule=schedule),
        ):
            made.function = Program(program(calls), self.target)
            yield made
