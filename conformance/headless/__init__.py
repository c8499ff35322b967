"""GPU code without a GPU: Inductor compiles for a GPU that is described, and what it generated is interpreted.

device     questions about the device, answered from its description
guard      the same for C++
memory     CUDA tensors whose bytes are the host's
host       library calls on such tensors, done by the CPU
attention  which attention kernel that GPU chooses
kernel     a generated Triton kernel: launched, compiled to machine code
autotune   choices that a GPU would time: listed, and made by rule
interpret  Triton's interpreter, in a process that also compiles
program    `torch.compile` with all of it
asked      the questions whose answers set two devices apart
shared     one capture for several devices
fidelity   generated kernels held against those that a real GPU made
"""

from __future__ import annotations

from functools import cache

import torch

from conformance.target import Target


@cache
def unavailable(target: Target) -> str:
    """Why a described GPU cannot be had here; empty when it can."""
    from conformance.headless.errors import Moved

    if torch.version.cuda is None:
        return "needs a CUDA build of torch (no GPU, no driver): pip install torch from PyPI on Linux"
    try:
        import triton  # noqa: F401
    except ImportError:
        return "needs triton: pip install triton"
    try:
        from conformance.headless.program import session

        with session(target):
            pass
    except Moved as moved:
        return f"headless targets do not know torch {torch.__version__}: {moved}"
    return ""
