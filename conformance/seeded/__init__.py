"""Seeded faults: real compilers, broken on purpose in one place, to see whether the suite notices and where it points.

    with seeded.get("lost_copy_epilogue"):
        ...

or, in every process of a run: `pytest -p conformance.seeded.plugin --seeded lost_copy_epilogue`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from conformance.errors import unknown
from conformance.seeded.fault import FAULTS, Fault

__all__ = ["Fault", "all_faults", "get"]

SHELVES = (
    "capture",
    "decomposition",
    "postgrad",
    "fusion",
    "codegen",
    "runtime",
    "cache",
    "headless",
    "cuda",
    "torch_tensorrt",
    "autodeploy",
)


@cache
def all_faults() -> dict[str, Fault]:
    """By name, in the order of stages."""
    for shelf in SHELVES:
        import_module(f"conformance.seeded.{shelf}")
    return FAULTS


def get(name: str) -> Fault:
    """A fault, or a change that breaks nothing."""
    changes: dict[str, Fault] = import_module("conformance.seeded.changes").CHANGES
    faults = all_faults() | changes
    if name not in faults:
        raise unknown("seeded fault", name, faults)
    return faults[name]
