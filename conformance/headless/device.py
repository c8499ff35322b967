"""A GPU that is described, not present: questions about the device are answered from its description.

    with described(Target.parse("sm_90")):
        torch.compile(module)(*inputs)      # inputs: conformance.headless.memory.on_device(...)

Nothing computes differently: what is answered stands in `answers`, and all of it is undone at the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from conformance.backends.inductor.seam import seam as inductor
from conformance.headless.answers import answering
from conformance.headless.attention import choosing
from conformance.headless.cpu_dispatch import DONE_BY, Host
from conformance.headless.device_guard import idle_gpu
from conformance.headless.memory import allocated, empty_strided
from conformance.headless.seam import REMEMBERING, seam, triton
from conformance.target import Device, Target
from conformance.torch_seam import pytree


@contextlib.contextmanager
def described(target: Target) -> Iterator[None]:
    """Inside, torch and Triton believe that the target's GPU is here. Undone at the end, whatever happens."""
    device = target.device
    assert device is not None, f"{target} is not a described GPU"
    with contextlib.ExitStack() as stack:
        stack.enter_context(asking(device))
        stack.enter_context(seam.replace(empty_strided_cuda=empty_strided))
        stack.enter_context(allocated())
        stack.enter_context(inductor.subscribe(fold_constants=_on_host, codegen_and_compile=_on_host))
        stack.enter_context(seam.subscribe(**{key: hook for key, hook in FOR_REAL.items() if seam.has(key)}))
        stack.enter_context(choosing(device))
        stack.enter_context(idle_gpu())
        yield


@contextlib.contextmanager
def asking(device: Device) -> Iterator[None]:
    """The answers alone; inside `described`, those of another device."""
    with answering(seam, device), _forgotten(), triton.replace(driver=_triton_driver(device)):
        yield


def _on_host(proceed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The compiler computes with constants of the graph: to fold them, to write them into a log. The host does it."""
    with Host():
        return proceed(*args, **kwargs)


@contextlib.contextmanager
def _on_host_inside(proceed: Callable[..., Any]) -> Iterator[Any]:
    """Where torch leaves its modes to compute for real (what is known of constants alone, while a graph is traced or rewritten), it leaves
    this one, too: it is entered again."""
    with proceed() as mode, Host():
        yield mode


def _fallback_on_host(proceed: Callable[..., Any], mode: Any, func: Any, flat: Any, spec: Any, refused: Any) -> Any:
    """An operator that says nothing of its shapes is run by torch, on zeros of the device: the host has zeros as well."""
    if not any(isinstance(value, torch.Tensor) and value.is_cuda for value in flat):
        return proceed(mode, func, flat, spec, refused)
    args, kwargs = pytree.tree_unflatten(flat, spec)
    if func in DONE_BY:
        with mode:
            return DONE_BY[func](*args, **kwargs)
    fakes: dict[int, Any] = {}

    def real(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return torch.device("cpu") if isinstance(value, torch.device) else value
        reach = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
        zeros = torch.zeros(max(reach, 0), dtype=value.dtype).as_strided(value.shape, value.stride())
        fakes[id(zeros)] = value
        return zeros

    with seam.no_dispatch():
        args, kwargs = pytree.tree_unflatten([real(value) for value in flat], spec)
        result = func(*args, **kwargs)

    def fake(value: torch.Tensor) -> Any:
        if id(value) in fakes:
            return fakes[id(value)]
        with mode:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")

    return pytree.tree_map_only(torch.Tensor, fake, result)


# Where torch computes for real while it compiles.
FOR_REAL: dict[str, Any] = {
    "outside_fake_mode": _on_host_inside,
    "outside_modes": _on_host_inside,
    "fallback_kernel": _fallback_on_host,
}


# --------------------------------------------------------------------------------------- answers that are kept


@contextlib.contextmanager
def _forgotten() -> Iterator[None]:
    """Answers that torch keeps once it has asked are forgotten on the way in, and on the way out."""
    properties: dict[str, Any] = seam.worker_properties
    before = dict(properties)

    def clear() -> None:
        for cached in _caches():
            cached.cache_clear()
        properties.clear()

    clear()
    try:
        yield
    finally:
        clear()
        properties.update(before)


@cache
def _caches() -> list[Any]:
    """Those functions of `REMEMBERING` that this version has, and that keep their answers in it."""
    found = [getattr(seam, path) for path in REMEMBERING if seam.has(path)]
    return [function for function in found if callable(getattr(function, "cache_clear", None))]


# -------------------------------------------------------------------------------------------- Triton's driver


def _triton_driver(gpu: Device) -> Any:
    """A driver that knows its target and nothing else."""
    target = triton.gpu_target("cuda", gpu.major * 10 + gpu.minor, gpu.warp_size)
    body = dict.fromkeys(triton.driver_base.__abstractmethods__, _absent) | {
        "is_active": classmethod(lambda cls: True),
        "get_current_target": lambda self: target,
        "get_active_torch_device": lambda self: torch.device("cuda", 0),
        "get_device_interface": lambda self: torch.cuda,
        "get_current_device": lambda self: 0,
        "get_current_stream": lambda self, device=0: 0,
        "utils": SimpleNamespace(get_device_properties=lambda device=0: _triton_properties(gpu)),
    }
    return type("DescribedDriver", (triton.driver_base,), body)()


def _triton_properties(device: Device) -> dict[str, int]:
    return {
        "max_shared_mem": device.shared_memory_per_block_optin,
        "max_num_regs": device.regs_per_multiprocessor,
        "multiprocessor_count": device.multi_processor_count,
        "warpSize": device.warp_size,
        "sm_clock_rate": device.clock_rate,
        "mem_clock_rate": device.memory_clock_rate,
        "mem_bus_width": device.memory_bus_width,
    }


def _absent(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("the device is described, not present: this needs a real one")
