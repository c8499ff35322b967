"""Parts of the compilers by folder: which stage does a frame of a traceback belong to?

Asked for tests that call a part of a compiler themselves, so that no rung can take it away. The first fragment that is in a
frame's path names the stage; the innermost frame counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_TORCH = (
    ("torch/_dynamo/pgo", "cache"),
    ("torch/_dynamo/package", "cache"),
    ("torch/_dynamo/", "capture"),
    ("torch/_export/serde", "cache"),
    ("torch/_export/passes", "decomposition"),
    ("torch/_export/", "capture"),
    ("torch/export/", "capture"),
    ("torch/_functorch/_aot_autograd/autograd_cache", "cache"),
    ("torch/_functorch/", "decomposition"),
    ("torch/_decomp/", "decomposition"),
    ("torch/_inductor/decomposition", "decomposition"),
    ("torch/_inductor/fx_passes/", "postgrad"),
    ("torch/_inductor/pattern_matcher", "postgrad"),
    ("torch/_inductor/constant_folding", "postgrad"),
    ("torch/_inductor/scheduler", "fusion"),
    ("torch/_inductor/lowering", "fusion"),
    ("torch/_inductor/ir.py", "fusion"),
    ("torch/_inductor/dependencies", "fusion"),
    ("torch/_inductor/codecache", "cache"),
    ("torch/_inductor/remote_cache", "cache"),
    ("torch/_inductor/codegen/", "codegen"),
    ("torch/_inductor/select_algorithm", "codegen"),
    ("torch/_inductor/cudagraph", "runtime"),
    ("torch/_inductor/runtime/", "runtime"),
)
# An assertion that fails is the test's own, whatever it was called through.
ASSERTS = ("/unittest/", "/expecttest/", "torch/testing/")
# By ladder.
PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "pytorch": _TORCH,
    "torch_tensorrt": (
        ("torch_tensorrt/dynamo/lowering/_decomposition", "decomposition"),
        ("torch_tensorrt/dynamo/lowering/", "postgrad"),
        ("torch_tensorrt/dynamo/partitioning/", "fusion"),
        ("torch_tensorrt/dynamo/conversion/", "codegen"),
        ("torch_tensorrt/dynamo/runtime/", "runtime"),
        ("torch_tensorrt/dynamo/_engine_cache", "cache"),
        ("torch_tensorrt/dynamo/_refit", "cache"),
    ),
    "tensorrt_llm": (
        ("tensorrt_llm/_torch/auto_deploy/export/", "capture"),
        ("tensorrt_llm/_torch/auto_deploy/models/", "capture"),
        ("tensorrt_llm/_torch/auto_deploy/transform/", "fusion"),
        ("tensorrt_llm/_torch/auto_deploy/custom_ops/", "codegen"),
        ("tensorrt_llm/_torch/auto_deploy/compile/", "codegen"),
        ("tensorrt_llm/_torch/auto_deploy/shim/", "runtime"),
    ),
}


def stage_of(frames: Iterable[Sequence[Any]], ladder: str, test_file: str) -> str:
    """The stage of the innermost frame that is in a part of the compiler; empty where the test called none. What stands
    above the test in the traceback is the runner of tests, which PyTorch keeps in the same folders."""
    for file in (str(frame[0]).replace("\\", "/") for frame in reversed(list(frames))):
        for fragment, stage in PARTS.get(ladder, ()):
            if fragment in file:
                return stage
        if file.endswith(test_file) or any(fragment in file for fragment in ASSERTS):
            break
    return ""
