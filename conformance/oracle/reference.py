"""What eager gives for the same inputs, in their own dtype and in fp64."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from conformance.errors import NotInEager, first_line
from conformance.oracle.outcome import Outcome, clone_inputs, play, run
from conformance.torch_seam import TorchDispatchMode, pytree


class InDouble(TorchDispatchMode):
    """Ask for float64 wherever the program asks for a narrower float."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        dtype = kwargs.get("dtype")
        if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
            kwargs["dtype"] = torch.float64
        args = pytree.tree_map_only(torch.dtype, lambda d: torch.float64 if d.is_floating_point else d, args)
        return func(*args, **kwargs)


def widened(inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The inputs in fp64, with the same strides, offsets and sharing; None where one storage holds two dtypes."""
    storages: dict[int, tuple[torch.dtype, torch.Tensor]] = {}

    def widen(value: torch.Tensor) -> torch.Tensor | None:
        storage, needs = value.untyped_storage(), value.requires_grad
        if not storage.nbytes():
            return value.detach().double().requires_grad_(needs) if value.is_floating_point() else value
        flat = torch.empty(0, dtype=value.dtype, device=value.device).set_(
            storage, 0, (storage.nbytes() // value.element_size(),), (1,)
        )
        wide = flat.double() if value.is_floating_point() else flat
        dtype, wide = storages.setdefault(storage.data_ptr(), (value.dtype, wide))
        if dtype != value.dtype:
            return None
        return (
            torch.as_strided(wide, value.size(), value.stride(), value.storage_offset()).detach().requires_grad_(needs)
        )

    made = tuple(widen(x) if isinstance(x, torch.Tensor) else x for x in inputs)
    lost = any(new is None and old is not None for new, old in zip(made, inputs, strict=True))
    return None if lost else made


def in_double(module: nn.Module, inputs: tuple[Any, ...], *, calls: int = 1) -> Outcome | None:
    """The same computation in fp64; None where it cannot be had."""
    twin = copy.deepcopy(module).double()
    arguments = widened(clone_inputs(inputs))
    if arguments is None:
        return None
    with _double_by_default(), InDouble():
        outcome = run(twin, arguments, twin, calls=calls)
    return None if outcome.error else outcome


@contextmanager
def _double_by_default() -> Iterator[None]:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@dataclass
class Reference:
    """What eager gives for these inputs, in their own dtype and in fp64."""

    eager: Outcome
    exact: Outcome | None


def reference(
    module: nn.Module,
    inputs: tuple[Any, ...],
    *,
    random: bool = False,
    calls: int = 1,
    fn: Callable[..., Any] | None = None,
) -> Reference:
    """What eager gives. `fn` is the module as a target runs it, where that is not simply to call it."""
    eager, exact = _in_eager(
        lambda: run(fn or module, clone_inputs(inputs), module, calls=calls),
        None if random else lambda: in_double(module, inputs, calls=calls),
    )
    if exact is not None and len(exact.outputs) != len(eager.outputs):
        exact = None
    return Reference(eager, exact)


def played(
    build: Callable[[], nn.Module],
    make_inputs: Callable[[], tuple[Any, ...]],
    program: Callable[[Any], Any],
    random: bool,
) -> Reference:
    """What eager gives for a scenario: a new module and new inputs each time, once as they are and once in fp64. `program` makes of a
    module what the scenario is given to run."""

    def once() -> Outcome:
        module = build()
        return play(module, program(module), make_inputs())

    eager, exact = _in_eager(once, None if random else lambda: _played_in_double(build(), make_inputs(), program))
    if exact is not None and (len(exact.outputs) != len(eager.outputs) or exact.spec != eager.spec):
        exact = None
    return Reference(eager, exact)


def _in_eager(
    call: Callable[[], Outcome], in_fp64: Callable[[], Outcome | None] | None
) -> tuple[Outcome, Outcome | None]:
    """Eager's own control flow goes through Dynamo, and leaves it changed: so it is kept from that, and is let only where it cannot do
    without (`torch.cond` with gradients). Then nothing is known in fp64: under a dispatch mode Dynamo would give up on it for good."""
    with torch.compiler.set_stance("force_eager"):
        eager = call()
        _check_device()
        if eager.error is None:
            return eager, in_fp64() if in_fp64 is not None else None
    if of_control_flow(eager.error):
        again = call()
        eager = again if again.error is None else eager
    return eager, None


def of_control_flow(error: BaseException) -> bool:
    """Was it raised by `torch.cond` or one of its like?"""
    return any("_higher_order_ops" in frame.filename for frame in traceback.extract_tb(error.__traceback__))


def _check_device() -> None:
    """Eager checks some inputs on the GPU itself, by an assert that ends the CUDA context: nobody could be compared with it."""
    if lost := device_lost():
        raise NotInEager(f"eager itself ends the CUDA context, so that nothing can run after it: {lost}")


def device_lost() -> str:
    """What ended the CUDA context of this process, "" if it works. Whatever comes next would fail, whoever it is."""
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError as error:
        return first_line(error)
    return ""


def device_draws() -> bool:
    """Can random numbers be drawn on the GPU? Not after the capture of a CUDA graph broke off: torch's generator stays in it."""
    try:
        if torch.cuda.is_initialized():
            torch.rand(1, device="cuda")
    except RuntimeError:
        return False
    return True


def modes_in_force() -> dict[str, str]:
    """What a program can leave set in its process, and eager and compiled programs behave by."""
    found: dict[str, object] = {
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "deterministic algorithms, warnings only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "new memory is filled": torch.utils.deterministic.fill_uninitialized_memory,
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "gradients": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "precision of float32 products": torch.get_float32_matmul_precision(),
    }
    for device in ("cpu", "cuda"):
        found[f"autocast, {device}"] = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    return {name: str(value) for name, value in found.items()}


def _played_in_double(module: nn.Module, inputs: tuple[Any, ...], program: Callable[[Any], Any]) -> Outcome | None:
    arguments = widened(inputs)
    if arguments is None:
        return None
    twin = module.double()
    with _double_by_default(), InDouble():
        outcome = play(twin, program(twin), arguments)
    return None if outcome.error else outcome
