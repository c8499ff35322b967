"""A view of the input is written to and given back: with inductor the view has other strides and other values.

aot_eager is right."""

import torch
from torch.testing._internal.two_tensor import TwoTensor


def program(x):
    view = x.t()[1:]
    view.mul_(2)
    return x + 1, view


def given():
    x = torch.arange(12.0).reshape(4, 3)
    return TwoTensor(x, x.clone())


wrong = 0
want = program(given())[1].a
for backend in ("aot_eager", "inductor"):
    torch._dynamo.reset()
    got = torch.compile(program, backend=backend)(given())[1].a
    print(backend, got.stride(), got, "eager gives", want.stride(), want)
    wrong += not torch.equal(got, want)
assert not wrong
