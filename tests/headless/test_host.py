"""What the host does in place of a described GPU: memory that grows, cells that only a GPU has, what a GPU refuses."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from conformance import oracle
from conformance.backends.inductor.headless import runs_in_eager
from conformance.backends.inductor.seam import seam
from conformance.errors import NotInEager
from conformance.headless import interpret
from conformance.headless.program import Program
from conformance.library import load
from conformance.target import Target

SM90 = Target("sm_90")


def differences(module: nn.Module, *inputs: torch.Tensor) -> list[str]:
    """Of the compiled program from eager on the CPU."""
    seam.reset()
    given = tuple(x.detach().clone().requires_grad_(x.requires_grad) for x in inputs)
    with seam.config.patch(force_disable_caches=True):
        outcome = oracle.run(Program(module, SM90), given, module)
    assert outcome.error is None, outcome.error
    return [str(one) for one in oracle.compare(outcome, oracle.reference(module, inputs))]


class Grows(nn.Module):
    def forward(self, x):
        y = torch.add(x, 1, out=torch.empty(0, dtype=x.dtype, device=x.device))
        return y * 2, torch.sum(x, dim=1, out=torch.empty(0, device=x.device))


class TimesZero(nn.Module):
    """Inductor folds it, with a tensor that it makes on the device."""

    def forward(self, x):
        return x * 0 + x.sin()


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell = kind(4, 6)

    def forward(self, x):
        state = self.cell(x)
        return state if isinstance(state, torch.Tensor) else state[0] + state[1]


class Scans(nn.Module):
    def forward(self, x):
        return x.cumsum(1), torch.logcumsumexp(x, 0), x.argmax(1), x.var(1)


@pytest.mark.parametrize(
    "module", [Grows(), TimesZero(), Recurrent(nn.GRUCell), Recurrent(nn.LSTMCell), Scans()], ids=lambda m: repr(m)[:30]
)
def test_the_host_gives_what_eager_gives(module: nn.Module) -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    assert differences(module, x.requires_grad_(isinstance(module, Recurrent))) == []


def test_a_kernel_is_given_floats() -> None:
    """A number that is read out of a tensor is an argument of the kernel that uses it."""

    class Filled(nn.Module):
        def forward(self, x):
            return x.new_full((3,), x[0, 0].item()) + x[0, :3]

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert differences(Filled(), torch.randn(2, 4, generator=torch.Generator().manual_seed(1))) == []


@pytest.mark.parametrize(
    "name",
    [
        "upstream.validation.floor_divide_by_zero",
        "upstream.numerics.clamp_min_beyond_half",
        "upstream.unsolvable.rank_of_infinities",
    ],
)
def test_what_the_cpu_alone_refuses_says_nothing_of_a_gpu(name: str) -> None:
    with pytest.raises(NotInEager, match="cannot be had from the CPU"):
        runs_in_eager(load()[name], SM90)


def test_integers_are_not_multiplied_on_a_gpu() -> None:
    class Product(nn.Module):
        def forward(self, x):
            return x @ x

    with pytest.raises(NotImplementedError, match='"mm_cuda" not implemented for'):
        Program(Product(), SM90, compiled=False)(torch.ones(3, 3, dtype=torch.uint8))


def test_a_remainder_is_that_of_a_gpu() -> None:
    """NVIDIA's GPUs compute it from a rounded quotient, which is wrong where that does not fit (pytorch#194345)."""

    class Remainder(nn.Module):
        def forward(self, x, y):
            return torch.remainder(x, y)

    given = torch.tensor([7.0, 5.5, 1e30]), torch.tensor([2.0, float("inf"), 3e-10])
    small, unlimited, large = Program(Remainder(), SM90)(*given).tolist()
    assert (small, unlimited) == (1.0, 5.5)
    assert not 0.0 <= large < 3e-10


def test_a_scan_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    combined = interpret._combined
    monkeypatch.setattr(interpret, "_combined", lambda *args: calls.append(1) or combined(*args))
    x = torch.randn(1, 64, generator=torch.Generator().manual_seed(1))
    assert differences(Scans(), x) == []
    assert 0 < len(calls) < 64
