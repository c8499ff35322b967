"""Inductor (AOTAutograd): after an indexed write into a tensor that is not contiguous, outputs have other strides than in eager.

`x.index_copy_(…)` becomes `index_copy`, whose result is contiguous; what is computed from it follows that, and not the strides of `x`.
Found by shape fuzzing (`kv_cache.index_copy_dim1` with a transposed cache). `aot_eager` shows it, too. Exits 1 while the defect is there.
"""

import sys

import torch

AT = torch.tensor([1])
OPS = {
    "index_copy_": lambda x: x.index_copy_(1, AT, torch.ones(1, 1, 2, 2)),
    "index_add_": lambda x: x.index_add_(1, AT, torch.ones(1, 1, 2, 2)),
    "index_fill_": lambda x: x.index_fill_(1, AT, 3.0),
    "index_put_": lambda x: x.index_put_((torch.tensor([0]), AT), torch.ones(1, 2, 2)),
    "scatter_": lambda x: x.scatter_(1, torch.zeros(1, 1, 2, 2, dtype=torch.int64), 3.0),
    "scatter_add_": lambda x: x.scatter_add_(1, torch.zeros(1, 1, 2, 2, dtype=torch.int64), torch.ones(1, 1, 2, 2)),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 3.0),
    "add_": lambda x: x.add_(1.0),
    "copy_ of a slice": lambda x: x[:, :1].copy_(torch.ones(1, 1, 2, 2)),
}
wrong = []
for name, write in OPS.items():

    def program(x, write=write):
        write(x)
        return x * 2.0

    torch._dynamo.reset()
    eager = program(torch.randn(1, 2, 2, 2).transpose(-1, -2))
    compiled = torch.compile(program, backend="aot_eager")(torch.randn(1, 2, 2, 2).transpose(-1, -2))
    print(f"{name}: stride {compiled.stride()}, eager has {eager.stride()}")
    if compiled.stride() != eager.stride():
        wrong.append(name)
print("torch", torch.__version__, "WRONG: " + ", ".join(wrong) if wrong else "right")
sys.exit(bool(wrong))
