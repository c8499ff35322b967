"""The library of seeded faults is in order: each says what it does, can be put in, and is gone afterwards."""

from __future__ import annotations

import inspect

import pytest

from conformance import paths, seeded
from conformance.baseline import Baseline
from conformance.errors import UsageError
from conformance.library import load
from conformance.seeded import selftest
from conformance.seeded.fault import find, swapped
from conformance.stage import STAGES

INDUCTOR = [fault for fault in seeded.all_faults().values() if fault.backend == "inductor" and fault.target == "cpu"]


def test_forty_faults_over_all_stages() -> None:
    assert len(seeded.all_faults()) >= 40
    assert {fault.stage for fault in INDUCTOR} == set(STAGES)


@pytest.mark.parametrize("fault", seeded.all_faults().values(), ids=lambda fault: fault.name)
def test_says_what_it_does_and_where(fault: seeded.Fault) -> None:
    assert fault.what.endswith("."), "a sentence"
    assert fault.kinds and fault.micrographs
    assert set(fault.micrographs) <= set(load())


@pytest.mark.parametrize("fault", INDUCTOR, ids=lambda fault: fault.name)
def test_goes_in_and_comes_out(fault: seeded.Fault) -> None:
    for _ in range(2):
        with fault:
            pass


def test_one_inside_the_other_and_one_that_cannot_go_in() -> None:
    path = "torch._inductor.codegen.cpp:CppOverrides.tanh"
    owner, name = find(path)
    before = inspect.getattr_static(owner, name)
    with seeded.get("tanh_written_as_sinh"), seeded.get("fusion_off"):
        assert inspect.getattr_static(owner, name) is not before
    assert inspect.getattr_static(owner, name) is before
    with pytest.raises(ZeroDivisionError), seeded.get("tanh_written_as_sinh"):
        1 / 0  # noqa: B018
    assert inspect.getattr_static(owner, name) is before


def test_swapped_keeps_static_methods_and_puts_them_back() -> None:
    path = "torch._inductor.codegen.cpp:CppOverrides.tanh"
    owner, name = find(path)
    before = inspect.getattr_static(owner, name)
    with swapped(path, lambda original: lambda x: "other"):
        assert isinstance(inspect.getattr_static(owner, name), staticmethod)
        assert owner.tanh("x") == "other"
    assert inspect.getattr_static(owner, name) is before


def test_a_place_that_moved_is_named() -> None:
    with pytest.raises(UsageError, match=r"there is no torch\._inductor\.scheduler\.Scheduler\.gone"):
        find("torch._inductor.scheduler:Scheduler.gone")


def test_an_unknown_fault_is_named() -> None:
    with pytest.raises(UsageError, match=r"unknown seeded fault 'fusion_of'.*did you mean fusion_off"):
        seeded.get("fusion_of")


@pytest.mark.slow
@pytest.mark.own_process
def test_a_fault_that_crashes_is_found_beside_what_the_compiler_showed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline tells how many texts there were: fewer after a crash, and that is the crash's."""
    monkeypatch.setattr(selftest, "Baseline", lambda env: Baseline(env, paths.reports() / "no-such-folder"))
    (caught,) = selftest.run(["code_does_not_compile"], baseline=True)
    assert (caught.stage, caught.kind, caught.unavailable) == ("codegen", "crash", "")
