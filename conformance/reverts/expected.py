"""The stage that a changed file belongs to, and whether an answer is right."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch

from conformance.mutants import sources
from conformance.stage import STAGES, Stage

# Files in which no fault is seeded, and fixes are found all the same. What neither table names (settings, helpers of all stages) says nothing.
MORE: tuple[tuple[str, Stage], ...] = (
    ("_dynamo/pgo.py", Stage.CACHE),
    ("_dynamo/*", Stage.CAPTURE),
    ("fx/experimental/*", Stage.CAPTURE),
    ("_functorch/*", Stage.DECOMPOSITION),
    ("_subclasses/*", Stage.DECOMPOSITION),
    ("_higher_order_ops/*", Stage.DECOMPOSITION),
    ("_inductor/inductor_prims.py", Stage.DECOMPOSITION),
    ("_inductor/mkldnn_*.py", Stage.FUSION),
    ("_inductor/kernel/*", Stage.FUSION),
    ("_inductor/comms.py", Stage.FUSION),
    ("_inductor/codegen/*", Stage.CODEGEN),
    ("_inductor/select_algorithm.py", Stage.CODEGEN),
    ("_inductor/ops_handler.py", Stage.CODEGEN),
    ("_inductor/virtualized.py", Stage.CODEGEN),
    ("_inductor/runtime/*", Stage.RUNTIME),
)


def of_file(file: str) -> Stage | None:
    """Of a file as the history names it: `torch/_dynamo/guards.py`."""
    inside = file.removeprefix("torch/")
    return sources.stage_of(inside) or next((stage for pattern, stage in MORE if fnmatch(inside, pattern)), None)


def stages(files: Iterable[str]) -> list[Stage]:
    """Where what these files do wrong should be seen, in order; empty where none of them says."""
    found = {of_file(file) for file in files}
    return [stage for stage in STAGES if stage in found]


def answer(stage: str, files: Iterable[str]) -> str:
    """Is it the right stage? `right`, `near` (the stage before or after), `other`, or `no stage` where the files say none."""
    far = [abs(Stage(stage).order - wanted.order) for wanted in stages(files)]
    if not far:
        return "no stage"
    return {0: "right", 1: "near"}.get(min(far), "other")
