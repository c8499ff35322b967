"""Matmul templates for a described GPU: choices listed, one forced, tensor cores in the machine code."""

from __future__ import annotations

import pytest
import torch

from conformance.backends.inductor.seam import seam
from conformance.headless.autotune import TEMPLATE
from conformance.headless.device import described
from conformance.headless.program import Program
from conformance.target import Target


class Matmul(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a @ b)


@pytest.mark.parametrize(("target", "instruction"), [("sm_80", "mma.sync"), ("sm_90", "wgmma.mma_async")])
def test_a_template_is_forced(target: str, instruction: str) -> None:
    seam.reset()
    a, b = (torch.randn(128, 128) / 8).half(), (torch.randn(128, 128) / 8).half()
    program = Program(Matmul(), Target(target), pick=TEMPLATE)
    with seam.config.patch(force_disable_caches=True), torch.no_grad():
        found = program(a, b)
    (choice,) = program.choices
    assert len(choice.alternatives) > 1 and choice.taken in choice.alternatives and "triton" in choice.taken
    assert torch.allclose(found, torch.relu(a @ b), atol=1e-2)
    with described(Target(target)):
        (binary,) = [kernel.compiled() for kernel in program.kernels.values()]
    assert not binary.error and any(instruction in name for name in binary.instructions), binary
