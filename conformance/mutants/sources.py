"""Which of torch's Python files are a compiler's, and the stage that each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import torch

from conformance.stage import Stage

ROOT = Path(torch.__file__).parent

# The first pattern that a file matches decides. `None`: no fault of it would be one of a compiler (logs, tools, what only tests use), or
# Dynamo traces the file's functions as part of a program, so that they must stay as they are.
STAGES: tuple[tuple[str, Stage | None], ...] = (
    ("_dynamo/polyfills/*", None),
    ("_dynamo/repro/*", None),
    ("_dynamo/backends/*", None),
    ("_dynamo/test*", None),
    ("_dynamo/*debug*", None),
    ("_dynamo/*profiler*", None),
    ("_dynamo/logging.py", None),
    ("_dynamo/*replay*", None),
    ("_dynamo/external_utils.py", None),
    ("_dynamo/decorators.py", None),
    ("_dynamo/comptime.py", None),
    ("_dynamo/metrics_context.py", None),
    ("_dynamo/graph_break_hints.py", None),
    ("_dynamo/*package*.py", Stage.CACHE),
    ("_dynamo/pgo.py", None),
    ("_dynamo/*", Stage.CAPTURE),
    ("_guards.py", Stage.CAPTURE),
    ("fx/experimental/symbolic_shapes.py", Stage.CAPTURE),
    ("_decomp/*", Stage.DECOMPOSITION),
    ("_refs/*", Stage.DECOMPOSITION),
    ("_prims_common/__init__.py", Stage.DECOMPOSITION),
    ("_meta_registrations.py", Stage.DECOMPOSITION),
    ("_subclasses/fake_*.py", Stage.DECOMPOSITION),
    ("_subclasses/functional_tensor.py", Stage.DECOMPOSITION),
    ("fx/experimental/proxy_tensor.py", Stage.DECOMPOSITION),
    ("_functorch/_aot_autograd/autograd_cache.py", Stage.CACHE),
    ("_functorch/_aot_autograd/logging_utils.py", None),
    ("_functorch/_aot_autograd/runtime_wrappers.py", Stage.RUNTIME),
    ("_functorch/_aot_autograd/*", Stage.DECOMPOSITION),
    ("_functorch/aot_autograd.py", Stage.DECOMPOSITION),
    ("_functorch/partitioners.py", Stage.DECOMPOSITION),
    ("_functorch/compile_utils.py", Stage.DECOMPOSITION),
    ("_inductor/decomposition.py", Stage.DECOMPOSITION),
    ("_inductor/fx_passes/*", Stage.POSTGRAD),
    ("_inductor/pattern_matcher.py", Stage.POSTGRAD),
    ("_inductor/constant_folding.py", Stage.POSTGRAD),
    ("_inductor/fx_utils.py", Stage.POSTGRAD),
    ("_inductor/freezing*.py", Stage.POSTGRAD),
    ("_inductor/lowering.py", Stage.FUSION),
    ("_inductor/ir.py", Stage.FUSION),
    ("_inductor/graph.py", Stage.FUSION),
    ("_inductor/scheduler.py", Stage.FUSION),
    ("_inductor/dependencies.py", Stage.FUSION),
    ("_inductor/memory.py", Stage.FUSION),
    ("_inductor/loop_body.py", Stage.FUSION),
    ("_inductor/sizevars.py", Stage.FUSION),
    ("_inductor/choices.py", Stage.FUSION),
    ("_inductor/subgraph_lowering.py", Stage.FUSION),
    ("_inductor/tiling_utils.py", Stage.FUSION),
    ("_inductor/invert_expr_analysis.py", Stage.FUSION),
    ("_inductor/kernel/*.py", Stage.FUSION),
    ("_inductor/codegen/*debug*", None),
    ("_inductor/codegen/rocm/*", None),
    ("_inductor/codegen/xpu/*", None),
    ("_inductor/codegen/mps*", None),
    ("_inductor/codegen/halide.py", None),
    ("_inductor/codegen/pallas.py", None),
    ("_inductor/codegen/cutedsl/*", None),
    ("_inductor/codegen/cuda/*", None),
    ("_inductor/codegen/cutlass/*", None),
    ("_inductor/codegen/*", Stage.CODEGEN),
    ("_inductor/bounds.py", Stage.CODEGEN),
    ("_inductor/index_propagation.py", Stage.CODEGEN),
    ("_inductor/optimize_indexing.py", Stage.CODEGEN),
    ("_inductor/dtype_propagation.py", Stage.CODEGEN),
    ("_inductor/analyze_preserves_zero_mask.py", Stage.CODEGEN),
    ("utils/_sympy/*", Stage.CODEGEN),
    ("_inductor/runtime/*bench*", None),
    ("_inductor/runtime/triton_helpers.py", None),
    ("_inductor/runtime/*cache*", Stage.CACHE),
    ("_inductor/runtime/*", Stage.RUNTIME),
    ("_inductor/output_code.py", Stage.RUNTIME),
    ("_inductor/cudagraph_*.py", Stage.RUNTIME),
    ("_inductor/codecache.py", Stage.CACHE),
    ("_inductor/standalone_compile.py", Stage.CACHE),
)

# What is right where a file works for two stages: the first one that shows a fault.
NEIGHBOURS = {
    Stage.CAPTURE: {Stage.CAPTURE},
    Stage.DECOMPOSITION: {Stage.DECOMPOSITION, Stage.CAPTURE},  # fake tensors say shapes to Dynamo as well
    Stage.POSTGRAD: {Stage.POSTGRAD},
    Stage.FUSION: {Stage.FUSION, Stage.CODEGEN},  # lowering writes the loops whose code is generated
    Stage.CODEGEN: {Stage.CODEGEN, Stage.FUSION},  # sizes and bounds are asked by lowering, too
    Stage.RUNTIME: {Stage.RUNTIME},
    Stage.CACHE: {Stage.CACHE},
}


def stage_of(file: str) -> Stage | None:
    """Of a file, relative to torch's folder."""
    return next((stage for pattern, stage in STAGES if fnmatch(file, pattern)), None)


@cache
def files() -> tuple[str, ...]:
    """The compilers' files, relative to torch's folder."""
    return tuple(sorted(_files()))


def _files() -> Iterator[str]:
    tops = {pattern.split("/")[0] for pattern, _ in STAGES}
    for top in tops:
        folder = ROOT / top
        found = [folder] if folder.is_file() else folder.rglob("*.py")
        for path in found:
            name = path.relative_to(ROOT).as_posix()
            if stage_of(name) is not None:
                yield name
