"""The questions that were asked of a described device, and how every known device answers them.

What a compiler made without a question that two devices answer differently serves both of them: `multi_target` relies
on that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from conformance.headless.seam import HARMLESS
from conformance.target import DEVICES, Device

NEAR = 8  # frames


@dataclass
class Asked:
    """The questions of one stretch of work, with the answer of every device that is known."""

    answers: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def apart(self, one: str, other: str) -> list[str]:
        """The questions that two targets answer differently."""
        return sorted({what for what, said in self.answers if said[one] != said[other]})


_open: list[Asked] = []


@contextmanager
def listening(asked: Asked) -> Iterator[None]:
    _open.append(asked)
    try:
        yield
    finally:
        _open.remove(asked)


def answered(what: str, answer: Callable[[Device], Any], device: Device) -> Any:
    """The answer for this device; whoever listens learns of the others'."""
    for asked in _open if _open and not _harmless() else ():
        asked.answers.append((what, {name: answer(other) for name, other in DEVICES.items()}))
    return answer(device)


def _harmless() -> bool:
    frame: FrameType | None = sys._getframe(2)
    for _ in range(NEAR):
        if frame is None:
            return False
        module = frame.f_globals.get("__name__")
        if module in HARMLESS or f"{module}:{frame.f_code.co_name}" in HARMLESS:
            return True
        frame = frame.f_back
    return False


class Properties:
    """What `torch.cuda.get_device_properties` gives. Each of them is a question of its own."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __repr__(self) -> str:  # part of a cache's key
        return f"Properties({self._device})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return answered(name, lambda device: _property(device, name), self._device)


def _property(device: Device, name: str) -> Any:
    if name == "L2_cache_size":
        return device.l2_cache_size
    return FIXED[name] if name in FIXED else getattr(device, name)


FIXED = {"is_integrated": 0, "is_multi_gpu_board": 0, "gcnArchName": ""}
