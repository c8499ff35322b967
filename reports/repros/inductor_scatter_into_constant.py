"""`torch.zeros(3, 8, dtype=torch.float64).scatter(1, place, 0.1)` writes 0.1 as float32: the rewrite of a scatter into a constant computes in
float32 (in 2.11, the result even has that dtype). Integers beyond 2**24 change, and places and numbers that eager refuses are accepted."""

import torch


def double(place):
    return torch.zeros(3, 8, dtype=torch.float64).scatter(1, place, 0.1)


def around(place):
    return torch.full((3, 8), 0.1, dtype=torch.float64).scatter(1, place, 0)


def integers(place):
    return torch.full((3, 8), 2**24 + 1).scatter(1, place, 1.0)


def beyond(place):
    return torch.zeros(3, 8).scatter(1, place + 1, 1.0)


def before(place):
    return torch.zeros(3, 8).scatter(1, place - 1, 1.0)


def outcome(call):
    try:
        return call(torch.tensor([[1], [0], [7]]))
    except RuntimeError:
        return torch.zeros(0)


found = []
for call in (double, around, integers, beyond, before):
    torch._dynamo.reset()
    right, made = outcome(call), outcome(torch.compile(call))
    if right.dtype != made.dtype or not torch.equal(right, made):
        found.append(call.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))
