"""Dropout in activation checkpointing, torch 2.14.1 on an H200: the gradient is not the derivative of the forward with the same seed, so
that the recomputed forward drew another mask. Needs a GPU."""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


@torch.compile
def dropped(x):
    return checkpoint(lambda y: F.dropout(y.sin(), 0.4, training=True).cos(), x, use_reentrant=False) * x


def total(x):
    torch.manual_seed(13)
    return dropped(x).sum()


x = torch.randn(4, 65, device="cuda", requires_grad=True)
total(x).backward()
step = 1e-3
above, below = ((x + way).detach().requires_grad_() for way in (step, -step))  # without gradients 2.14 does not compile it
by_differences = (total(above) - total(below)).item() / (2 * step)
gradient = x.grad.sum().item()
if abs(gradient - by_differences) > 0.02 * abs(by_differences) + 0.05:
    raise SystemExit(f"wrong gradient: {gradient:.4g}, by differences {by_differences:.4g}")
