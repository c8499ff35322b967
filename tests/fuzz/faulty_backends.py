"""A backend that is eager but for one planted fault. It has a front door, as Inductor has, and compiles nothing."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance import backends
from conformance.backends.base import Backend, Case, Compiled
from conformance.backends.inductor.backend import InductorBackend
from conformance.fuzz.runner import Runner
from conformance.stage import Stage
from conformance.target import Target
from conformance.trace import Observation

Fn = Callable[..., Any]


def _off_by_one(out: Any) -> Any:
    return tuple(x + 1 for x in out) if isinstance(out, tuple) else out + 1


def _when(condition: Callable[..., bool]) -> Callable[[Fn], Fn]:
    def plant(fn: Fn) -> Fn:
        def call(*inputs: Any) -> Any:
            out = fn(*inputs)
            return _off_by_one(out) if condition(*inputs) else out

        return call

    return plant


def _third_call(fn: Fn) -> Fn:
    calls = 0

    def call(*inputs: Any) -> Any:
        nonlocal calls
        calls += 1
        out = fn(*inputs)
        return _off_by_one(out) if calls == 3 else out

    return call


def _lost_when_aliased(fn: Fn) -> Fn:
    def call(x: torch.Tensor, y: torch.Tensor) -> Any:
        before = x.clone()
        out = fn(x, y)
        if x.numel() and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
            x.copy_(before)
        return out

    return call


def _permuted(x: torch.Tensor, *rest: Any) -> bool:
    """Its memory is in another order than its dims, and that of three dims or more."""
    return x.dim() > 2 and min(x.shape) > 1 and list(x.stride()) != sorted(x.stride(), reverse=True)


def _wrong_beside_expanded(fn: Fn) -> Fn:
    """What is written is wrong where another input is expanded."""

    def call(x: torch.Tensor, y: torch.Tensor) -> Any:
        out = fn(x, y)
        if x.numel() and any(stride == 0 and size > 1 for stride, size in zip(y.stride(), y.shape, strict=True)):
            x.add_(1)
        return out

    return call


def _segfault(fn: Fn) -> Fn:
    def call(*inputs: Any) -> Any:
        if inputs[0].shape[-1] == 17:
            os.kill(os.getpid(), 11)
        return fn(*inputs)

    return call


def _hang(fn: Fn) -> Fn:
    def call(*inputs: Any) -> Any:
        while inputs[0].shape[-1] % 2:
            time.sleep(0.01)
        return fn(*inputs)

    return call


def _hang_deaf(fn: Fn) -> Fn:
    """As a loop of machine code does: no signal is heard."""

    def call(*inputs: Any) -> Any:
        if inputs[0].shape[-1] % 2:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            ctypes.PyDLL(None).sleep(1_000_000)  # with Python's lock in hand
        return fn(*inputs)

    return call


def _lost_gpu(fn: Fn) -> Fn:
    """As an illegal address does: this call fails, and all that the process asks of its GPU from now on."""

    def call(*inputs: Any) -> Any:
        if inputs[0].shape[-1] % 2:
            Runner.lost = lambda self: True  # type: ignore[method-assign]
            raise RuntimeError("CUDA error: misaligned address")
        return fn(*inputs)

    return call


FAULTS: dict[str, Callable[[Fn], Fn]] = {
    "none": lambda fn: fn,
    "odd sizes": _when(lambda x, *rest: x.shape[-1] % 2 == 1),
    "stride 0": _when(lambda *xs: any(s == 0 and n > 1 for x in xs for s, n in zip(x.stride(), x.shape, strict=True))),
    "size 1": _when(lambda x, *rest: 1 in x.shape),
    "third call": _third_call,
    "aliased": _lost_when_aliased,
    "tail": _when(lambda x, *rest: x.numel() > 64 and x.numel() % 16 > 8),
    "size 0": _when(lambda x, *rest: 0 in x.shape),
    "permuted": _when(_permuted),
    "offset": _when(lambda *xs: any(x.storage_offset() for x in xs)),
    "half": _when(lambda x, *rest: x.dtype in (torch.float16, torch.bfloat16)),
    "expanded beside written": _wrong_beside_expanded,
    "segfault": _segfault,
    "hang": _hang,
    "deaf hang": _hang_deaf,
    "lost gpu": _lost_gpu,
}


class LyingCompiled(Compiled):
    def __init__(self, case: Case, plant: Callable[[Fn], Fn]) -> None:
        self.module = case.module()
        self.fn = plant(self.module)

    def __call__(self, *inputs: Any) -> Any:
        return self.fn(*inputs)

    def observe(self, stage: Stage) -> Observation:
        return Observation()


class LyingBackend(Backend):
    name = "lying"

    def __init__(self, fault: str = "") -> None:
        self.plant = FAULTS[fault or os.environ.get("LYING_FAULT", "none")]

    def versions(self) -> dict[str, str]:
        return {"torch": torch.__version__}

    def unavailable(self, target: Target) -> dict[Stage, str]:
        return {}

    def compile(self, case: Case) -> Compiled:
        return LyingCompiled(case, self.plant)

    def compile_entry(self, fn: Fn) -> Fn:
        return self.plant(fn)

    def marked(self, case: Case, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return InductorBackend().marked(case, inputs)

    @contextmanager
    def settings(self, case: Case) -> Iterator[None]:
        yield


backends.BUILTIN["lying"] = "tests.fuzz.faulty_backends:LyingBackend"
