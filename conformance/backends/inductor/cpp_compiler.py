"""Which C++ compiler it is that Inductor calls: what is kept of its answers and of what it made is kept by this."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch


@cache
def compiler_identity(name: str) -> str:
    """Its version, and on which processor `-march=native` is resolved."""
    said = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
    return said + torch.backends.cpu.get_cpu_capability() + _processor()


@cache
def _processor() -> str:
    with suppress(OSError):
        return next(
            line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features"))
        )
    return ""
