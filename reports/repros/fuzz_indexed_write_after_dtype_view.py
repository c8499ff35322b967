"""An indexed write is lost after a write through a view of another dtype: `a.view(torch.int32).fill_(3)`, then `a[torch.tensor([2])] = 1`; `a + 0.5` does
not see the 1.

Found by `conformance fuzz -m programs` on torch 2.15.0 (grammar `writes`, view `integers`). torch 2.11.0 refuses to compile it ("make_reindexer
NYI on DtypeView"). Stage: code generation. Needs torch alone; exits 1 while the defect is there. Next of kin: pytorch#198101, #151156.
"""

import sys

import torch


def program(x):
    a = x.t().contiguous().t()
    a.view(torch.int32).fill_(3)
    a[torch.tensor([2])] = 1
    return a + 0.5


x = torch.arange(24.0).view(4, 6)
want, got = program(x), torch.compile(program)(x)
print("torch", torch.__version__, "eager", want[2].tolist(), "compiled", got[2].tolist())
sys.exit(not torch.equal(want, got))
