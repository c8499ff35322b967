"""Strides of an earlier form of a program count only where the program itself has them."""

from __future__ import annotations

import torch

from conformance import oracle


def test_strides_that_the_program_has_too_were_lost_in_that_form() -> None:
    x = torch.randn(3, 4)
    ref = oracle.reference(_Transposed(), (x,))
    program = oracle.compare(oracle.run(_Dense(), (x.clone(),), _Dense()), ref)
    assert [str(one) for one in program] == ["output 0: stride (3, 1), eager has (1, 4)"]
    dense, kept = oracle.run(_Dense(), (x.clone(),), _Dense()), oracle.run(_Transposed(), (x.clone(),), _Transposed())
    assert oracle.compare_form(dense, ref, program) == program
    assert oracle.compare_form(kept, ref, program) == []
    assert oracle.compare_form(dense, ref, []) == [], "a graph may have other strides where the program has eager's"


def test_wrong_values_count_whatever_the_strides() -> None:
    x = torch.randn(3, 4)
    ref = oracle.reference(_Transposed(), (x,))
    found = oracle.compare_form(oracle.run(_Wrong(), (x.clone(),), _Wrong()), ref, [])
    assert [one.kind.value for one in found] == ["wrong_result"]


class _Transposed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).t()


class _Dense(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).t().contiguous()


class _Wrong(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 2).t().contiguous()
