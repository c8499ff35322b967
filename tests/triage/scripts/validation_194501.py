"""pytorch#194501: smooth_l1_loss with a negative beta: eager raises."""

import sys

import torch
import torch.nn.functional as F


def loss(a, b):
    return F.smooth_l1_loss(a, b, beta=-1.0)


def outcome(fn):
    try:
        return fn(torch.tensor([1.0]), torch.tensor([0.0])).item()
    except RuntimeError as e:
        return str(e).splitlines()[0]


a, b = outcome(loss), outcome(torch.compile(loss))
print("eager:", a, "| compiled:", b)
sys.exit(isinstance(a, str) != isinstance(b, str))
