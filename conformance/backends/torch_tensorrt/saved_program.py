"""A saved program, loaded and run in a process that has compiled nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from conformance import oracle
from conformance.backends.torch_tensorrt.seam import seam
from conformance.errors import first_line
from conformance.fresh import FRESH, Died
from conformance.micrograph import Micrograph


def run_in_fresh_process(
    program: Path, inputs: tuple[Any, ...], calls: int, needs: type[Micrograph] | None = None
) -> oracle.Outcome:
    """Load the program there, call it, and return all that the calls left behind.

    needs   a micrograph whose module is imported there first, since a program may call ops that it registers"""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        given, left = Path(folder) / "given.pt", Path(folder) / "left.pt"
        torch.save((inputs, calls), given)
        try:
            error = FRESH.call(_load_and_run, str(program), str(given), str(left), needs)
        except Died as died:
            error = f"the process that loaded it died: {died}"
        if error:
            return oracle.Outcome(error=RuntimeError(error))
        outcome: oracle.Outcome = torch.load(left, weights_only=False)
        return outcome


def _load_and_run(program: str, given: str, left: str, needs: type[Micrograph] | None) -> str:
    """In the fresh process. Returns what went wrong; empty when the outcome was left in the file `left`."""
    inputs, calls = torch.load(given, weights_only=False)
    try:
        loaded = seam.load(program)
        module = loaded.module() if isinstance(loaded, torch.export.ExportedProgram) else loaded
    except Exception as error:
        return first_line(error)
    outcome = oracle.run(module, inputs, None, calls=calls)
    if outcome.error is not None:
        return first_line(outcome.error)
    outcome.live = []
    torch.save(outcome, left)
    return ""
