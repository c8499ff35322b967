"""A saved program runs in a process that compiled nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance import oracle
from conformance.backends.torch_tensorrt.saved_program import run_in_fresh_process

pytestmark = pytest.mark.library


class Accumulate(torch.nn.Module):
    def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        state.add_(x)
        return state * 2.0


def test_a_program_is_loaded_and_run_there(tmp_path: Path) -> None:
    inputs = (torch.zeros(3), torch.ones(3))
    path = tmp_path / "program.ep"
    torch.export.save(torch.export.export(Accumulate(), inputs), path)
    outcome = run_in_fresh_process(path, inputs, calls=2)
    assert outcome.error is None
    assert oracle.compare(outcome, oracle.reference(Accumulate(), inputs, calls=2)) == []
    assert torch.equal(inputs[0], torch.zeros(3)), "the caller's tensors are its own"

    (tmp_path / "broken.ep").write_bytes(b"not a program")
    assert run_in_fresh_process(tmp_path / "broken.ep", inputs, calls=1).error is not None
