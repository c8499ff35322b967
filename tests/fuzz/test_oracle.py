"""The oracle on what only a fuzzer draws: inputs that share storage, values at the ends of the range."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from conformance import oracle
from conformance.backends.base import CannotRun
from conformance.fuzz.judge import judged
from conformance.fuzz.rejection import cannot_run, declined, overlaps


def differences(
    got: list[float], want: list[float], exact: list[float], dtype: torch.dtype = torch.float32
) -> list[oracle.Difference]:
    g, w = (torch.tensor(x, dtype=dtype) for x in (got, want))
    return list(oracle.value_differences("output 0", g, w, torch.tensor(exact, dtype=torch.float64)))


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("got", "want", "exact", "right"),
    [
        (3.0, INF, 3.0, True),  # eager overflowed on the way, the compiler did not
        (NAN, INF, 3.0, True),  # both did, each in its own order
        (7.0, INF, 3.0, False),  # a number, and not the right one
        (INF, 3.0, 3.0, False),  # only the compiler overflowed
        (3.0, NAN, NAN, False),  # a NaN that belongs there was lost
        (INF, NAN, NAN, False),
        (-INF, INF, INF, False),
        (1e38, INF, 1e300, False),  # the dtype cannot hold it: infinity it is
        (NAN, 0.0, 1.4, True),  # eager lost it as well, in its own way
        (NAN, 1.4, 1.4, False),
    ],
)
def test_infinities(got: float, want: float, exact: float, right: bool) -> None:
    assert (not differences([got, 1.0], [want, 1.0], [exact, 1.0])) is right


@pytest.mark.parametrize(("count", "error", "right"), [(3, 6e-7, True), (3, 2e-5, False), (200, 6e-7, False)])
def test_few_long_sums_may_be_added_in_another_order(count: int, error: float, right: bool) -> None:
    """Eager's sums are near the exact ones by chance. Of many numbers that is no chance, and TF32 is worse than any order."""
    exact = [100.0 + index for index in range(count)]
    assert (not differences([value * (1 + error) for value in exact], exact, exact)) is right


class Product(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2.0)
        return x @ y.t()


def test_inputs_that_share_storage_have_an_exact_reference() -> None:
    base = torch.randn(40)
    x, y = base[:20].view(4, 5), base[10:30].view(4, 5)
    ref = oracle.reference(Product(), (x, y))
    assert ref.exact is not None
    torch.testing.assert_close(ref.exact.outputs[0].float(), ref.eager.outputs[0])
    torch.testing.assert_close(ref.exact.inputs["input 1"].float(), ref.eager.inputs["input 1"])
    assert not torch.equal(ref.eager.inputs["input 1"], y), "the write was seen through the other input"


def test_one_storage_in_two_dtypes_has_none() -> None:
    base = torch.randn(8)
    assert oracle.widened((base, base.view(torch.int32))) is None


def test_expanded_and_empty_inputs_keep_their_strides() -> None:
    given = (torch.randn(1, 3).expand(4, 3), torch.empty(0, 3), torch.empty(2, 0), 5, torch.arange(3))
    made = oracle.widened(given)
    assert made is not None and made[0].stride() == (0, 1) and made[0].dtype == torch.float64
    assert made[3] == 5 and made[4].dtype == torch.int64


class Sum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=0)


@pytest.mark.parametrize(("error", "right"), [(2.7e-6, True), (1e-3, False), (0.5, False)])
def test_another_order_of_a_long_sum_is_no_finding_and_less_precision_is(error: float, right: bool) -> None:
    x = torch.full((255, 2), 1.5258)
    ref = oracle.reference(Sum(), (x,))
    outcome = oracle.run(lambda y: y.sum(dim=0) * (1 + error), (x,))
    assert (not judged(outcome, ref, (x,))) is right


def test_an_infinity_is_no_order_of_summing() -> None:
    x = torch.ones(255, 2)
    outcome = oracle.run(lambda y: y.sum(dim=0) * torch.tensor([1.0, float("inf")]), (x,))
    assert judged(outcome, oracle.reference(Sum(), (x,)), (x,))


def test_a_nan_is_no_infinity() -> None:
    x = torch.tensor([[float("inf"), 1.0]])
    outcome = oracle.run(lambda y: y.sum(dim=0) * 1.0, (x,))
    ref = oracle.reference(Nan(), (x,))
    assert judged(outcome, ref, (x,), eager=lambda inputs: oracle.run(Nan(), inputs))


class Nan(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x).sum(dim=0) + x.sum(dim=0)


class Choice(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ y, dim=-1)


def test_a_choice_among_huge_numbers_is_a_matter_of_rounding() -> None:
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(64, 16, generator=generator) * 1e15, torch.randn(16, 1, generator=generator).expand(16, 8) * 1e15)
    module = Choice()
    ref = oracle.reference(module, x)
    eager = lambda inputs: oracle.run(module, inputs, module)
    other = oracle.run(lambda a, b: torch.softmax((a.flip(1) @ b.flip(0)) * (1 + 1e-6 * torch.arange(8)), dim=-1), x)
    assert oracle.compare(other, ref), "the answers differ"
    assert not judged(other, ref, x, eager=eager)
    wrong = oracle.run(lambda a, b: torch.softmax(a @ b, dim=-1) + 3.0, x)
    assert judged(wrong, ref, x, eager=eager)
    plain = tuple(value / 1e15 for value in x)
    assert judged(
        oracle.run(lambda a, b: module(a, b) + 0.1, plain), oracle.reference(module, plain), plain, eager=eager
    )


def test_what_overlaps() -> None:
    base = torch.arange(12.0)
    assert overlaps(base[:3].expand(4, 3)) and overlaps(base.as_strided((3, 4), (1, 1)))
    assert (
        not overlaps(base.view(3, 4).t())
        and not overlaps(base[::2])
        and not overlaps(torch.empty(0, 3))
        and not overlaps(base[0])
    )


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


def test_attention_to_nothing_has_no_answer() -> None:
    """By hand it is NaN, by upstream's own op it is 0; every other number is held to."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3, 4, generator=generator) for _ in range(3))
    k[..., 0], q[..., 0, 0] = 1.0, -torch.inf
    module, ops = Attention(), ("aten.bmm", "aten._softmax")
    ref = oracle.reference(module, (q, k, v))
    other = oracle.run(lambda *x: torch.nan_to_num(module(*x)), (q, k, v))
    assert judged(other, ref, (q, k, v)) and not judged(other, ref, (q, k, v), ops=ops)
    assert judged(oracle.run(lambda *x: torch.nan_to_num(module(*x)) + 0.1, (q, k, v)), ref, (q, k, v), ops=ops)
    assert judged(oracle.run(lambda *x: module(*x) * torch.nan, (q, k, v)), ref, (q, k, v), ops=ops), "a NaN too many"


class Scattered(nn.Module):
    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return x.scatter_add(0, at, x[at])


def test_what_is_added_in_memory_is_rounded_each_time() -> None:
    x, at = torch.tensor([0.29541015625, -0.41162109375], dtype=torch.float16), torch.tensor([0, 0, 1, 1, 0, 1, 1] * 3)

    def one_by_one(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        out = x.clone()
        for index in at.tolist():
            out[index] += x[index]
        return out

    ref, ops = oracle.reference(Scattered(), (x, at)), ("aten.scatter_add",)
    assert not judged(oracle.run(one_by_one, (x, at)), ref, (x, at), ops=ops)
    assert judged(oracle.run(lambda *y: one_by_one(*y) * 1.05, (x, at)), ref, (x, at), ops=ops)


def test_eager_that_contradicts_itself_is_no_reference() -> None:
    class Same(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 0.0

    x, module = (torch.ones(4),), Same()
    ref = oracle.reference(module, x)
    garbage = iter(range(1, 9))
    wrong = oracle.run(lambda y: y + 5.0, x)
    assert judged(wrong, ref, x, eager=lambda inputs: oracle.run(module, inputs, module))
    assert not judged(
        wrong, ref, x, eager=lambda inputs: oracle.run(lambda y: y + float(next(garbage)), inputs, module)
    )


def test_what_is_not_the_compilers_word() -> None:
    from conformance.backends.autodeploy.capture import Unsupported

    assert declined(Unsupported("no gradients")) and not declined(RuntimeError("no")) and not declined(None)
    assert cannot_run(OverflowError("Python integer -1 out of bounds for uint8")) and cannot_run(CannotRun("no GPU"))
    assert not cannot_run(OverflowError("int too big to convert")) and not cannot_run(None)
