"""A wrapper that holds one tensor twice is compiled; the next one, which holds two tensors, gets the first result from the second tensor.

torch 2.11.0 and 2.15.0, inductor with its caches (the default); right with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1, right with aot_eager.
The entry of the cache does not know that two of its inputs were one; it is on disk, so that another process can get it, too.
"""

import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.testing._internal.two_tensor import TwoTensor

x, y = torch.ones(2), torch.full((2,), 5.0)


def program(pair):
    return pair * 2


with fresh_inductor_cache():
    compiled = torch.compile(program)
    compiled(TwoTensor(x, x))
    got = compiled(TwoTensor(x, y))
print("compiled", got, "eager gives", program(TwoTensor(x, y)))
assert torch.equal(got.a, x * 2)
assert torch.equal(got.b, y * 2)
