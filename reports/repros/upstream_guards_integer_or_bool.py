"""x * k with k = 1, a Python number: eager returns a new tensor, the compiled function the input itself. Needs torch alone; exits 1
while it is so."""

import sys

import torch


def f(x, k):
    return x * k


def shares(fn):
    x = torch.ones(2, 3, dtype=torch.int64)
    return fn(x, 1).data_ptr() == x.data_ptr()


eager, compiled = shares(f), shares(torch.compile(f))
print("the result is the input: eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
