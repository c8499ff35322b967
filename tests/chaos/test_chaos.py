"""A part of the table, and what happens to the controller itself. The whole table: `python -m tests.chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.table import full_disk, killed_controller, run

FAST = [name for name in FAULTS if name not in ("output_flood",)]


@pytest.mark.parametrize("fault", FAST)
def test_a_fault_costs_its_own_cell(fault: str, tmp_path: Path) -> None:
    row = FAST.index(fault)
    how = ("run", "pytest")[row % 2]
    workers = 1 + row // 2 % 2 if how == "run" else 1  # xdist's workers each import torch anew: in the whole table
    result = run(fault, how, workers, ("one", "all")[row // 4 % 2], tmp_path)
    assert result.problems() == [], result.printed[-2000:]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_controller_leaves_nothing_behind_and_the_record_goes_on(workers: int, tmp_path: Path) -> None:
    told = killed_controller("run", workers, tmp_path)
    assert told["kept"] >= 3 and told["left"] == [] and told["code"] == 1 and told["lines"] == 29, told


@pytest.mark.parametrize("how, size", [("run", 2500), ("run", 6000), ("pytest", 6000)])
def test_a_full_disk_is_one_line_and_the_record_stays_whole(how: str, size: int, tmp_path: Path) -> None:
    told = full_disk(how, tmp_path, size)
    assert told["code"] == 2 and told["whole"] and "Traceback" not in told["printed"], told["printed"]
    assert "cannot write" in told["printed"] and "--resume" in told["printed"]
