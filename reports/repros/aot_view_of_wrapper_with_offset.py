"""A compiled program gives a view of a wrapper whose tensor inside begins in the middle of its memory: the rows are other ones than in eager.

torch 2.15.0: wrong rows (the offset is added twice), or "setStorage: ... out of bounds" where there is no such memory. 2.11.0: right.
Since pytorch PR #191002: `gen_alias_from_base` compares the storage of the base with that of the target to see whether inductor
copied a misaligned input; the shells of wrappers never have the same storage, so the offset is added again.
"""

import torch
from torch.testing._internal.two_tensor import TwoTensor

long = torch.arange(24.0).reshape(8, 3)
given = TwoTensor(long[2:5], long[2:5])


def program(x):
    return x.t()


print("eager   ", program(given).a)
print("compiled", torch.compile(program, backend="aot_eager")(given).a)
assert torch.equal(program(given).a, torch.compile(program, backend="aot_eager")(given).a)
