"""GPU code without a GPU: Inductor compiles for a GPU that is described, and what it generated is interpreted.

seam            the names of torch and Triton that are answered or replaced
answers         the answers to questions about the device, from its description
device          `described(target)`: a context in which all of it holds
device_guard    the same for C++
device_queries  the questions whose answers set two devices apart
memory          CUDA tensors whose bytes are the host's
cpu_dispatch    library calls on such tensors, done by the CPU
attention       which attention kernel that GPU chooses
kernel          a generated Triton kernel: launched, compiled to machine code
autotune        choices that a GPU would time: listed, and made by rule
interpret       Triton's interpreter, in a process that also compiles
program         `torch.compile` with all of it
multi_target    one capture for several devices
fidelity        generated kernels compared with those that a real GPU made
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch

from conformance.backends.base import all_unavailable
from conformance.seam import Seam
from conformance.stage import STAGES, Stage
from conformance.target import Target


def unavailable(target: Target) -> dict[Stage, str]:
    """The stages that cannot be observed for a described GPU here, each with the reason."""
    if torch.version.cuda is None:
        return all_unavailable("needs a CUDA build of torch (no GPU, no driver): pip install torch from PyPI on Linux")
    try:
        import triton  # noqa: F401
    except ImportError:
        return all_unavailable("needs triton: pip install triton")
    from conformance.headless import seam

    reasons = seam.unavailable()
    if len(reasons) < len(STAGES) and (reason := _undescribable(target)):
        return all_unavailable(reason)
    return reasons


def tables() -> tuple[Seam, ...]:
    """The names of torch and Triton that headless targets rely on; none where a GPU cannot be described at all."""
    if torch.version.cuda is None or find_spec("triton") is None:
        return ()
    from conformance.headless.seam import seam, triton

    return (seam, triton)


@cache
def _undescribable(target: Target) -> str:
    """Why this torch does not let the GPU be described, in one line; empty when it does."""
    from conformance.headless.device import described
    from conformance.seam import MissingName

    try:
        with described(target):
            return ""
    except MissingName as error:
        return str(error)
