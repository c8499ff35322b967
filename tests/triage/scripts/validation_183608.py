"""pytorch#183608: embedding with a negative index: eager raises."""

import sys

import torch

emb = torch.nn.Embedding(5, 3)
idx = torch.tensor([0, -2])


def outcome(fn):
    try:
        return tuple(fn(idx).shape)
    except Exception:
        return "raises"


a, b = outcome(emb), outcome(torch.compile(emb))
print("eager:", a, "| compiled:", b)
sys.exit(0 if a == b else 1)
