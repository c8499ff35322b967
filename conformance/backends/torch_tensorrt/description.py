"""The questions that torch_tensorrt asks about a device, answered from a description. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from conformance.target import Device


@contextmanager
def described(device: Device) -> Iterator[None]:
    """Inside, `torch.cuda` describes this device; on leaving, everything is as it was."""
    answers: dict[str, Any] = {
        "get_device_capability": lambda *_: (device.major, device.minor),
        "get_device_name": lambda *_: device.name,
        "get_device_properties": lambda *_: device,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "mem_get_info": lambda *_: (device.total_memory, device.total_memory),
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
    }
    with ExitStack() as stack:
        for name, answer in answers.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, answer))
        yield
