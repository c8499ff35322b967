"""The answers to questions about a described GPU, by the keys of `conformance.headless.seam`.

This is the only description of what `torch.cuda` says while a GPU is described. Every compiler replaces the names that
stand in its own table and takes the answers from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.headless.device_queries import Properties, answered
from conformance.seam import Seam
from conformance.target import Device

FREE = 0.99  # of the memory


class Stream:
    """The default stream of the described GPU: always idle."""

    device_index, stream_id, cuda_stream, device = 0, 0, 0, torch.device("cuda", 0)

    def synchronize(self) -> None: ...
    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def record_event(self, event: Any = None) -> Any: ...

    def query(self) -> bool:
        return True


def answers(device: Device) -> dict[str, Any]:
    """The value that stands for each name while the device is described."""
    cuda = _cuda(device)
    interface: dict[str, Callable[..., Any]] = {
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
        **cuda,
        **{f"interface_{name}": staticmethod(answer) for name, answer in interface.items()},
        "accelerator_is_available": lambda: True,
        "accelerator_device_count": lambda: 1,
        "accelerator_current_accelerator": lambda check_available=False: torch.device("cuda"),
        "accelerator_current_device_index": lambda: 0,
        "raw_stream": lambda device=0: 0,
        "raw_device_count": lambda: 1,
        "init_gpu_context": lambda device: None,
        "max_clock_rate": lambda device_index=None: answered("clock_rate", lambda d: d.clock_rate // 1000, device),
        # Whether a padded matmul is faster is measured; where nothing can be, it is not padded.
        "should_pad": lambda key: False,
        "set_driver_to_gpu": lambda: None,
    }


def _cuda(device: Device) -> dict[str, Any]:
    """Of `torch.cuda`."""
    properties, stream = Properties(device), Stream()
    state: dict[str, torch.Tensor] = {}
    return {
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
        "mem_get_info": lambda device=None: (int(properties.total_memory * FREE), properties.total_memory),
        "memory_stats": lambda device=None: {},
        "memory_reserved": lambda device=None: 0,
        "memory_allocated": lambda device=None: 0,
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
    }


@contextmanager
def answering(table: Seam, device: Device, **others: Any) -> Iterator[None]:
    """Inside, the names of a compiler's table that are questions about the device are answered for this one. `others`
    are answers that this compiler is given in place of the usual ones."""
    given = answers(device) | others
    with table.replace(**{key: answer for key, answer in given.items() if key in table.names}):
        yield
