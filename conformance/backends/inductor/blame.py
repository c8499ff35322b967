"""The stage in which an exception arose: the innermost frame that belongs to one."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from conformance.stage import Stage

# Parts of file names, most special first.
OWNERS: tuple[tuple[str, Stage], ...] = (
    ("torch/_dynamo/backends", Stage.DECOMPOSITION),
    ("torch/_dynamo/", Stage.CAPTURE),
    ("torch/_functorch/partitioners", Stage.DECOMPOSITION),
    ("runtime_wrappers.py", Stage.RUNTIME),
    ("torch/_functorch/", Stage.DECOMPOSITION),
    ("torch/_decomp/", Stage.DECOMPOSITION),
    ("torch/_inductor/decomposition.py", Stage.DECOMPOSITION),
    ("torch/_inductor/fx_passes/", Stage.POSTGRAD),
    ("torch/_inductor/pattern_matcher.py", Stage.POSTGRAD),
    ("torch/_inductor/scheduler.py", Stage.FUSION),
    ("torch/_inductor/lowering.py", Stage.FUSION),
    ("torch/_inductor/ir.py", Stage.FUSION),
    ("torch/_inductor/kernel/", Stage.FUSION),
    ("torch/_inductor/codegen/", Stage.CODEGEN),
    ("torch/_inductor/codecache.py", Stage.CODEGEN),
    ("torch/_inductor/async_compile.py", Stage.CODEGEN),
    ("torch/_inductor/cpp_builder.py", Stage.CODEGEN),
    ("torch/_inductor/graph.py", Stage.FUSION),
    ("torch/_inductor/output_code.py", Stage.RUNTIME),
)


def stage_of(error: BaseException) -> Stage:
    name = type(error).__name__
    if name in ("CppCompileError", "CUDACompileError"):
        return Stage.CODEGEN
    for error in _innermost_first(error):
        if type(error).__name__ in ("CppCompileError", "CompilationError", "PTXASError"):
            return Stage.CODEGEN
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            for part, stage in OWNERS:
                if part in frame.filename.replace("\\", "/"):
                    return stage
    return Stage.RUNTIME


def _innermost_first(error: BaseException) -> Iterator[BaseException]:
    chain: list[BaseException] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        chain.append(current)
        current = getattr(current, "inner_exception", None) or current.__cause__ or current.__context__
    yield from reversed(chain)
