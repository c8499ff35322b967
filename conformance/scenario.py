"""Scenarios: what a caller does with a program, played once with eager and once with the compiler, from equal starting points.

A micrograph's method `play(self, run, *inputs)` is given `run`, which stands for the program:

    run(*inputs)                   call it: eager's forward, or the compiler's
    run.compile(fn, **options)     any other function, compiled in the same way; eager gives it back as it is
    run.elsewhere(fn, *args)       `fn(run, *args)` in a process that has compiled nothing and shares the caches; `fn` is of a module
    run.must_recapture()           the next call sees another world: a program that was compiled ahead of time cannot be asked

Everything that `play` returns is compared, plain Python values included, and so are the inputs and the module's own attributes afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from conformance.errors import CannotRun

Compile = Callable[..., Callable[..., Any]]
Elsewhere = Callable[..., Any]


class Run:
    """The program, as a scenario sees it."""

    def __init__(
        self, call: Callable[..., Any], compile: Compile, elsewhere: Elsewhere, compiled: bool, ahead_of_time: str = ""
    ) -> None:
        self._call, self._compile, self._elsewhere = call, compile, elsewhere
        self._ahead_of_time = ahead_of_time  # the backend's name, where it compiles once and for all
        self.compiled = compiled  # for what only a compiler can answer: a count of kernels, a state of its caches
        self.went_elsewhere = False

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self._call(*inputs, **options)

    def compile(self, fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return self._compile(fn, **options)

    def must_recapture(self) -> None:
        if self._ahead_of_time:
            raise CannotRun(
                f"{self._ahead_of_time} compiles ahead of time: it is not asked whether something changed since"
            )

    def elsewhere(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.went_elsewhere = True
        return self._elsewhere(fn, *args)


def _as_it_is(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return fn


def eager(call: Callable[..., Any]) -> Run:
    """The program uncompiled. What is played elsewhere is played in a fresh process, too: what it does there stays there."""
    from conformance.fresh import FRESH
    from conformance.torch_seam import in_dispatch_mode

    def elsewhere(fn: Callable[..., Any], *args: Any) -> Any:
        if in_dispatch_mode():  # eager in fp64 is one: tensors that come back through it are read as what they are not
            raise CannotRun("a dispatch mode does not reach into another process")
        return FRESH.call(_play_elsewhere, fn, args)

    return Run(call, _as_it_is, elsewhere, compiled=False)


def _play_elsewhere(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    import torch

    with torch.compiler.set_stance("force_eager"):
        return fn(eager(_nothing_to_call), *args)


def _nothing_to_call(*inputs: Any) -> Any:
    raise CannotRun("elsewhere there is no module: compile what you call with run.compile")


def only_modules(backend: str) -> Compile:
    """For a backend that compiles modules ahead of time."""

    def compile(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        raise CannotRun(f"{backend} compiles modules ahead of time, and no other functions")

    return compile


def not_callable(module: Any, inputs: tuple[Any, ...]) -> str:
    """Why a module cannot be called with the inputs as they are: some scenarios make the arguments of the call. Empty: it can."""
    try:
        inspect.signature(module.forward).bind(*inputs)
    except TypeError as error:
        return f"{error}; the scenario makes others of its inputs"
    return ""


def only_here(backend: str) -> Elsewhere:
    def elsewhere(fn: Callable[..., Any], *args: Any) -> Any:
        raise CannotRun(f"{backend} shares no caches between processes that this suite can play in")

    return elsewhere
