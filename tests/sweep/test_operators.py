"""Operators as work of a sweep: the cells are those of `conformance ops`, whichever shard a dtype is in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.errors import UsageError
from conformance.sweep.kinds import kind_of
from conformance.sweep.operators import Operators
from conformance.sweep.spec import Work

pytestmark = pytest.mark.own_process
WORK = Work(
    kind="ops", micrographs=("view_copy", "neg"), dtypes=("float32", "int8"), stages=("decomposition",), samples=1
)


def test_units_are_operators_in_a_dtype_and_each_gives_its_own_line() -> None:
    kind = kind_of(WORK)
    assert isinstance(kind, Operators)
    units = kind.units()
    assert units == [
        f"inductor/cpu/ops.{name}:{dtype}" for name in ("view_copy", "neg") for dtype in ("float32", "int8")
    ]
    asked = {unit: [f"decomposition/{unit}"] for unit in units[1:3]}
    said = [one for one in kind.run(asked) if "line" in one]
    assert {one["key"] for one in said} == {name for names in asked.values() for name in names}
    assert {one["unit"] for one in said} == set(asked)


def test_calls_that_eager_refuses_stand_with_the_operators_first_dtype_alone() -> None:
    sweep = replace(kind_of(WORK).sweep, forms=("plain", "errors"))  # type: ignore[attr-defined]
    first = {cell for cell in sweep.cells() if cell.endswith(":float32")}
    assert {task.errors for task in sweep._tasks(frozenset())} == {True}
    assert {task.errors for task in sweep._tasks(frozenset(first))} == {False}


def test_a_unit_that_killed_its_worker_is_an_error_with_the_reason() -> None:
    (said,) = kind_of(WORK).lost("inductor/cpu/ops.neg:int8", ["decomposition/inductor/cpu/ops.neg:int8"], "SIGKILL")
    assert (said["line"]["verdict"], said["line"]["reason"]) == ("error", "SIGKILL")


def test_two_backends_are_refused() -> None:
    with pytest.raises(UsageError, match="one backend and one target"):
        kind_of(Work(kind="ops", backends=("inductor", "torch_tensorrt")))
