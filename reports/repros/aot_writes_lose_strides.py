"""masked_fill_, cumsum_, tril_, scatter_ and others written to a transposed tensor give it the strides of a dense one.

AOTAutograd puts the function that makes a new tensor in place of the one that writes, and its decomposition does not keep the strides.
Exits 1 while one of them does.
"""

import sys

import torch

WRITES = {
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0.5, 1.5),
    "cumsum_": lambda x, y: x.cumsum_(0),
    "tril_": lambda x, y: x.tril_(),
    "scatter_": lambda x, y: x.scatter_(0, (y > 0.5).long(), y),
    "index_add_": lambda x, y: x.index_add_(0, torch.tensor([0, 2]), y[:2]),
}
lost = []
for name, write in WRITES.items():

    def program(x, y, write=write):
        x = x.clone()
        write(x, y)
        return x

    torch._dynamo.reset()
    inputs = torch.rand(6, 4).t(), torch.rand(4, 6)
    eager, compiled = program(*inputs).stride(), torch.compile(program)(*inputs).stride()
    print(f"{name}: eager {eager}, compiled {compiled}")
    lost += [name] if eager != compiled else []
sys.exit(1 if lost else 0)
