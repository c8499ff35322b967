"""A process that measures several cases is replaced when one of them has left a setting changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance import backends, oracle
from conformance.measure import measure
from conformance.plan import THREADS, PlannedCase

pytestmark = pytest.mark.own_process  # settings are left changed

MICROGRAPHS = '''
import os

import torch
from conformance import Contract, Micrograph, Tensor


class Tidy(Micrograph):
    """It leaves nothing behind."""

    inputs = (Tensor("3"),)
    contract = Contract()

    def forward(self, x):
        return x + 1


class Deterministic(Tidy):
    """Deterministic algorithms stay on."""

    def play(self, run, x):
        torch.use_deterministic_algorithms(True)
        return run(x)


class NoGradients(Tidy):
    """Gradients stay off."""

    def play(self, run, x):
        torch.set_grad_enabled(False)
        return run(x)


class Libdevice(Tidy):
    """As torch 2.14 does on a GPU with emulate_precision_casts."""

    def play(self, run, x):
        os.environ["TRITON_LIBDEVICE_PATH"] = "elsewhere"
        return run(x)


class Raises(Tidy):
    """It gives up half-way."""

    def play(self, run, x):
        torch.set_default_dtype(torch.float64)
        raise RuntimeError("half-way")
'''


def measured(case: PlannedCase, folder: Path) -> bool:
    return measure(case, str(folder), THREADS, False, lambda said: None)


@pytest.mark.parametrize(
    ("name", "ends"), [("tidy", False), ("deterministic", True), ("no_gradients", True), ("raises", True)]
)
def test_a_case_that_leaves_a_setting_changed_ends_its_process(name: str, ends: bool, tmp_path: Path) -> None:
    (tmp_path / "left.py").write_text(MICROGRAPHS)
    assert measured(PlannedCase("eager", "cpu", f"left.{name}"), tmp_path) is ends


def test_so_does_one_that_leaves_another_libdevice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_LIBDEVICE_PATH", "here")
    (tmp_path / "left.py").write_text(MICROGRAPHS)
    assert measured(PlannedCase("inductor", "cpu", "left.libdevice"), tmp_path)


def test_settings_of_a_compiler_are_among_them() -> None:
    backend = backends.get("inductor")
    before = backend.settings_in_force()
    with torch._inductor.config.patch(max_fusion_size=3):
        changed = {name for name, value in backend.settings_in_force().items() if value != before[name]}
    assert changed == {"inductor.max_fusion_size"}
    assert backend.settings_in_force() == before


def test_modes_are_the_same_when_nothing_happened() -> None:
    assert oracle.modes_in_force() == oracle.modes_in_force()
