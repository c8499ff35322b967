"""What code is made for: the CPU, a GPU that is present, or a GPU that is only described (headless)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from conformance.errors import unknown


@dataclass(frozen=True)
class Device:
    """The properties a GPU reports, for the headless targets. Sizes in bytes."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    l2_cache_size: int
    total_memory: int
    clock_rate: int  # kHz
    memory_clock_rate: int  # kHz
    memory_bus_width: int  # bits
    warp_size: int = 32
    max_threads_per_block: int = 1024


MIB = 1 << 20
DEVICES: dict[str, Device] = {
    "sm_80": Device(
        "NVIDIA A100-SXM4-80GB",
        8,
        0,
        108,
        2048,
        65536,
        49152,
        166912,
        167936,
        40 * MIB,
        81154 * MIB,
        1410000,
        1593000,
        5120,
    ),
    "sm_90": Device(
        "NVIDIA H200",
        9,
        0,
        132,
        2048,
        65536,
        49152,
        232448,
        233472,
        60 * MIB,
        143771 * MIB,
        1980000,
        3201000,
        6144,
    ),
    "sm_100": Device(
        "NVIDIA B200",
        10,
        0,
        148,
        2048,
        65536,
        49152,
        232448,
        233472,
        126 * MIB,
        183359 * MIB,
        1965000,
        3996000,
        8192,
    ),
    "sm_120": Device(
        "NVIDIA GeForce RTX 5090",
        12,
        0,
        170,
        1536,
        65536,
        49152,
        101376,
        102400,
        96 * MIB,
        32607 * MIB,
        3090000,
        14001000,
        512,
    ),
}


@dataclass(frozen=True)
class Target:
    """`cpu`, `cuda` or `sm_NN`."""

    name: str

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, name: str) -> Target:
        if name in ("cpu", "cuda") or name in DEVICES:
            return cls(name)
        raise unknown("target", name, ["cpu", "cuda", *DEVICES])

    @property
    def headless(self) -> bool:
        return bool(re.fullmatch(r"sm_\d+", self.name))

    @property
    def device(self) -> Device | None:
        """The description of a headless target."""
        return DEVICES.get(self.name)


CPU = Target("cpu")
CUDA = Target("cuda")
