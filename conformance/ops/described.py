"""Inductor for a GPU that is described and not present: kernels for that GPU, run by interpretation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from conformance.backends.inductor.seam import seam as inductor
from conformance.headless.program import Program
from conformance.ops.call import Call, program
from conformance.ops.rung import Compile, fresh, hooks_into
from conformance.stage import Stage
from conformance.target import Target


class Described:
    """The whole program for a described GPU. Interpreting is slow, so that a compile takes few calls."""

    stage, width, exported, keeps_layouts = Stage.RUNTIME, 16, False, True

    def __init__(self, target: Target) -> None:
        self.target = target

    def eager(self, module: nn.Module) -> Callable[..., Any]:
        """Eager on that device: what a compile is held against."""
        return Program(module, self.target, compiled=False)

    @contextmanager
    def compile(self, calls: Sequence[Call], whole: bool = True) -> Iterator[Compile]:
        made = Compile(lambda: None)
        hooks = hooks_into(made, calls, whole)
        with fresh(), inductor.config.patch(shape_padding=False), inductor.subscribe(**hooks):
            made.function = Program(program(calls), self.target)
            yield made
