"""The item before the first one of a deque, `deque[-len - 1]`: an item in place of an IndexError. Right on 2.11."""

import collections

import torch


def program(x):
    queue = collections.deque([x, x * 2])
    try:
        return queue[-3]
    except IndexError:
        return x * 5


x = torch.ones(2)
made = torch.compile(program, backend="eager")(x)
if not torch.equal(made, program(x)):
    raise SystemExit(f"torch {torch.__version__}: {made.tolist()}, eager gives {program(x).tolist()}")
