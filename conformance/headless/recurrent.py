"""The fused cells of GRU and LSTM, which exist on a GPU only: the same numbers from operators that the host has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Given = torch.Tensor | None


def _gru(x: torch.Tensor, h: torch.Tensor, hx: torch.Tensor, bias: Given = None, hidden_bias: Given = None) -> Any:
    x, h = _biased(x, bias), _biased(h, hidden_bias)
    (xr, xi, xn), (hr, hi, hn) = x.chunk(3, 1), h.chunk(3, 1)
    reset, update = torch.sigmoid(xr + hr), torch.sigmoid(xi + hi)
    new = torch.tanh(xn + reset * hn)
    return new + update * (hx - new), torch.cat([reset, update, new, hx, hn], 1)


def _gru_backward(grad: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> Any:
    reset, update, new, hx, hn = workspace.chunk(5, 1)
    of_new = grad * (1 - update) * (1 - new * new)
    of_update, of_reset = grad * (hx - new) * (1 - update) * update, of_new * hn * (1 - reset) * reset
    of_x, of_h = torch.cat([of_reset, of_update, of_new], 1), torch.cat([of_reset, of_update, of_new * reset], 1)
    biases = (of_x.sum(0), of_h.sum(0)) if has_bias else (None, None)
    return of_x, of_h, grad * update, *biases


def _lstm(x: torch.Tensor, h: torch.Tensor, cx: torch.Tensor, bias: Given = None, hidden_bias: Given = None) -> Any:
    take, forget, cell, give = (_biased(x, bias) + _biased(h, hidden_bias)).chunk(4, 1)
    take, forget, cell, give = torch.sigmoid(take), torch.sigmoid(forget), torch.tanh(cell), torch.sigmoid(give)
    cy = forget * cx + take * cell
    return give * torch.tanh(cy), cy, torch.cat([take, forget, cell, give], 1)


def _lstm_backward(
    grad_hy: Given, grad_cy: Given, cx: torch.Tensor, cy: torch.Tensor, workspace: torch.Tensor, has_bias: bool
) -> Any:
    take, forget, cell, give = workspace.chunk(4, 1)
    known = torch.tanh(cy)
    of_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    of_cy = (torch.zeros_like(cy) if grad_cy is None else grad_cy) + of_hy * give * (1 - known * known)
    gates = (
        of_cy * cell * take * (1 - take),
        of_cy * cx * forget * (1 - forget),
        of_cy * take * (1 - cell * cell),
        of_hy * known * give * (1 - give),
    )
    of_gates = torch.cat(gates, 1)
    return of_gates, of_cy * forget, of_gates.sum(0) if has_bias else None


def _biased(gates: torch.Tensor, bias: Given) -> torch.Tensor:
    return gates if bias is None else gates + bias


STAND_INS: dict[Any, Callable[..., Any]] = {
    aten._thnn_fused_gru_cell.default: _gru,
    aten._thnn_fused_gru_cell_backward.default: _gru_backward,
    aten._thnn_fused_lstm_cell.default: _lstm,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_backward,
}
