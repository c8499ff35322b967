"""The program writes to the tensor inside (`x.a.add_(1)`) and then computes with the wrapper: the write is not seen.

The wrapper and its tensor are two inputs of the graph that share memory; nobody notices (see pytorch/pytorch#114415, open, for two wrappers)."""

import torch
from torch.testing._internal.two_tensor import TwoTensor


def program(x):
    x.a.add_(1)
    return x * 2


def given():
    return TwoTensor(torch.ones(2), torch.ones(2))


wrong = 0
want = program(given()).a
for backend in ("eager", "aot_eager", "inductor"):
    torch._dynamo.reset()
    got = torch.compile(program, backend=backend)(given()).a
    print(backend, got, "eager gives", want)
    wrong += not torch.equal(got, want)
assert not wrong
