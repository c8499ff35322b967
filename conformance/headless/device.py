"""A GPU that is described, not present: questions about the device are answered from its description.

    with described(Target.parse("sm_90")):
        torch.compile(module)(*inputs)      # inputs: conformance.headless.memory.on_device(...)

Nothing computes differently: what is answered is listed in `questions`, and all of it is undone at the end.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from conformance.headless.attention import choosing
from conformance.headless.cpu_dispatch import Host
from conformance.headless.device_guard import idle_gpu
from conformance.headless.device_queries import Properties, answered
from conformance.headless.errors import Moved
from conformance.headless.memory import empty_strided
from conformance.target import Device, Target

Answer = Callable[..., Any]


class Stream:
    """The default stream of the described GPU: always idle."""

    device_index, stream_id, cuda_stream, device = 0, 0, 0, torch.device("cuda", 0)

    def synchronize(self) -> None: ...
    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def record_event(self, event: Any = None) -> Any: ...

    def query(self) -> bool:
        return True


def questions(device: Device) -> dict[str, dict[str, Answer]]:
    """Who is asked → what → the answer. Whoever kept a reference to `torch.cuda`'s functions is asked as well."""
    properties = Properties(device)
    stream = Stream()
    state: dict[str, torch.Tensor] = {}
    cuda: dict[str, Answer] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
        "_lazy_init": lambda: None,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (properties.major, properties.minor),
        "get_device_name": lambda device=None: properties.name,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "synchronize": lambda device=None: None,
        "is_current_stream_capturing": lambda: False,
        "get_rng_state": lambda device=None: state.get("rng", torch.zeros(16, dtype=torch.uint8)),
        "set_rng_state": lambda new_state, device=None: state.update(rng=new_state),
        "mem_get_info": lambda device=None: (device_memory(properties), properties.total_memory),
    }
    accelerator = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": lambda: 0,
    }
    interface = {
        "current_device": cuda["current_device"],
        "set_device": cuda["set_device"],
        "device_count": cuda["device_count"],
        "current_stream": cuda["current_stream"],
        "synchronize": cuda["synchronize"],
        "get_device_properties": cuda["get_device_properties"],
        "get_raw_stream": lambda device=0: 0,
        "exchange_device": cuda["_exchange_device"],
        "maybe_exchange_device": cuda["_maybe_exchange_device"],
    }
    return {
        "torch.cuda": cuda,
        "torch.accelerator": accelerator,  # type: ignore[dict-item]
        "torch._dynamo.device_interface.CudaInterface": {k: staticmethod(v) for k, v in interface.items()},
        "torch._subclasses.fake_tensor": {"init_gpu_context": lambda device: None},
        "torch._subclasses.fake_tensor.FakeTensorMode": {"avoid_device_init": property(lambda self: True)},  # type: ignore[dict-item]
        "torch._inductor.runtime.triton_helpers": {"set_driver_to_gpu": lambda: None},
        "torch._utils_internal": {"max_clock_rate": lambda: answered("clock_rate", lambda d: d.clock_rate // 1000, device)},
        # Whether a padded matmul is faster is measured; where nothing can be, it is not padded.
        "torch._inductor.fx_passes.pad_mm": {"get_cached_should_pad": lambda key: False},
        "torch._C._dynamo.guards": {"_empty_strided_cuda": empty_strided},
        "torch._C": {"_cuda_getCurrentRawStream": lambda device=0: 0, "_cuda_getDeviceCount": lambda: 1},
    }


def device_memory(properties: Any) -> int:
    return int(properties.total_memory * 0.99)


# Answers that torch keeps once it has asked: forgotten on the way in, and on the way out.
REMEMBERED = {
    "torch.utils._triton": (
        "has_triton",
        "_device_supports_tma",
        "_device_supports_tensor_descriptor",
        "has_triton_experimental_host_tma",
        "has_triton_tensor_descriptor_host_tma",
        "has_triton_tma",
        "has_triton_tma_device",
        "has_triton_cuda_tma_device",
        "has_datacenter_blackwell_tma_device",
        "has_triton_stable_tma_api",
        "triton_backend",
        "triton_hash_with_backend",
    ),
    "torch._dynamo.debug_utils": ("_cuda_system_info_comment",),
    "torch._inductor.utils": (
        "get_gpu_type",
        "is_big_gpu",
        "get_max_num_sms",
        "get_device_tflops",
        "_get_device_tflops",
        "get_gpu_dram_gbps",
        "_get_device_dram_gbps",
        "using_b200",
    ),
    "torch._inductor.codecache": ("CacheBase.get_system",),
    "torch._inductor.codegen.cuda.cuda_env": ("get_cuda_arch",),
    "torch._inductor.comm_analysis": ("get_gpu_type", "_has_nvlink"),
    "torch._inductor.kernel.mm": ("_is_sm7x_or_older_gpu",),
    "torch._inductor.lookup_table.choices": ("LookupTableChoices._get_device_key",),
    "torch._inductor.runtime.caching.context": ("_CompileContext.accelerator_properties",),
    "torch._inductor.runtime.hints": ("DeviceProperties.create",),
    "torch._inductor.select_algorithm": ("get_num_workers",),
}
MAPS = ("torch._dynamo.device_interface.caching_worker_device_properties",)


@contextlib.contextmanager
def described(target: Target) -> Iterator[None]:
    """Inside, torch and Triton believe that the target's GPU is here. Undone at the end, whatever happens."""
    device = target.device
    assert device is not None, f"{target} is not a described GPU"
    with answering(device), folding_on_host(), choosing(device), idle_gpu():
        yield


@contextlib.contextmanager
def answering(device: Device) -> Iterator[None]:
    """The questions alone; inside `described`, those of another device."""
    with contextlib.ExitStack() as stack:
        for owner, answers in questions(device).items():
            place = find(owner)
            for name, answer in answers.items():
                stack.enter_context(replaced(place, owner, name, answer))
        stack.enter_context(forgotten())
        stack.enter_context(triton_target(device))
        yield


@contextlib.contextmanager
def folding_on_host() -> Iterator[None]:
    """Constant folding executes operators on `cuda`: their values are computed on the host, and so folded alike."""
    owner = "torch._inductor.constant_folding.ConstantFolder"
    folder = find(owner)
    original = vars(folder).get("run")

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with Host():
            return original(self, *args, **kwargs)

    with replaced(folder, owner, "run", run):
        yield


@contextlib.contextmanager
def replaced(place: Any, owner: str, name: str, value: Any) -> Iterator[None]:
    """One attribute, for a while. What was not there to be replaced has moved."""
    kept = vars(place).get(name, MISSING)
    if kept is MISSING:
        raise Moved(f"{owner}.{name}")
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, kept)


MISSING = object()


@contextlib.contextmanager
def forgotten() -> Iterator[None]:
    names = [f"{module}.{name}" for module, names in REMEMBERED.items() for name in names]
    caches = [cached for name in names if hasattr(cached := optional(name), "cache_clear")]  # versions have not the same
    maps = [find(name) for name in MAPS]
    before = [dict(table) for table in maps]

    def clear() -> None:
        for cached in caches:
            cached.cache_clear()
        for table in maps:
            table.clear()

    clear()
    try:
        yield
    finally:
        clear()
        for table, content in zip(maps, before, strict=True):
            table.update(content)


def find(dotted: str) -> Any:
    """The module or class of this name."""
    found = optional(dotted)
    if found is None:
        raise Moved(dotted)
    return found


@cache
def optional(dotted: str) -> Any:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found
    return None


@contextlib.contextmanager
def triton_target(gpu: Device) -> Iterator[None]:
    """Triton's active driver is one that knows its target and nothing else."""
    try:
        from triton.backends.compiler import GPUTarget
        from triton.backends.driver import DriverBase
        from triton.runtime import driver
    except ImportError as error:
        raise Moved(f"triton ({error.name})") from None

    target = GPUTarget("cuda", gpu.major * 10 + gpu.minor, gpu.warp_size)
    body = dict.fromkeys(DriverBase.__abstractmethods__, _absent) | {
        "is_active": classmethod(lambda cls: True),
        "get_current_target": lambda self: target,
        "get_active_torch_device": lambda self: torch.device("cuda", 0),
        "get_device_interface": lambda self: torch.cuda,
        "get_current_device": lambda self: 0,
        "get_current_stream": lambda self, device=0: 0,
        "utils": SimpleNamespace(get_device_properties=lambda device=0: _triton_properties(gpu)),
    }
    with replaced(driver, "triton.runtime.driver", "_active", type("DescribedDriver", (DriverBase,), body)()):
        yield


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
