"""The private names of torch that fuzzing alone uses: how Inductor builds its C++ kernels, and functorch's stack of layers."""

from __future__ import annotations

import torch

from conformance.seam import Name, Seam
from conformance.stage import Stage

NO_STAGE: tuple[Stage, ...] = ()
CODE = "torch._inductor.codecache"
NAMES = {
    "cpp_kernel": Name("torch._inductor.async_compile:AsyncCompile.cpp_pybinding", NO_STAGE),
    "libraries": Name(f"{CODE}:CppCodeCache", NO_STAGE),
    "kernel_libraries": Name(f"{CODE}:CppPythonBindingsCodeCache", NO_STAGE),
    "kernel_header": Name(f"{CODE}:CppPythonBindingsCodeCache._get_uncompiled_header", NO_STAGE),
    "unwind": Name("torch._C._functorch:pop_dynamic_layer_stack_and_undo_to_depth", NO_STAGE),
}
seam = Seam("torch", lambda: str(torch.__version__), NAMES)
