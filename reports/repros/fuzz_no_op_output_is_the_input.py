"""Inductor returns the input itself where the graph multiplies it by ones: a write to the result then changes the input.

`x * ones` makes a new tensor in eager. Inductor's joint-graph pass drops the multiplication as a no-op, and what is returned is the
caller's own tensor. Found by shape fuzzing on torch 2.14.1 (a generated graph, shrunk to one line). Needs torch alone; exits 1 while
the defect is there.
"""

import sys

import torch

ONE_LINE = {
    "x * x.new_ones(())": lambda x: x * x.new_ones(()),
    "x * torch.ones_like(x)": lambda x: x * torch.ones_like(x),
    "x + torch.zeros_like(x)": lambda x: x + torch.zeros_like(x),
    "x - torch.zeros_like(x)": lambda x: x - torch.zeros_like(x),
    "x / torch.ones_like(x)": lambda x: x / torch.ones_like(x),
}

wrong = False
for name, fn in ONE_LINE.items():
    torch._dynamo.reset()
    x = torch.arange(4.0).reshape(2, 2)
    out = torch.compile(fn)(x)
    shares = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    out.fill_(7.0)
    changed = not torch.equal(x, torch.arange(4.0).reshape(2, 2))
    wrong |= shares or changed
    print(f"{name}: shares storage with x: {shares}; x changed by writing to the result: {changed}")
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)
