"""A compile that fails inside torch.inference_mode leaves the dispatcher broken: afterwards `torch.ones(2) + 1` raises "INTERNAL ASSERT
FAILED … PythonFallbackKernel.cpp" in the whole process, compiled or not.

Found by `conformance fuzz -m programs` on torch 2.11.0 and 2.15.0 (grammar `autograd`, around `inference`). That the compile fails
("Cannot set version_counter for inference tensor") is pytorch#180823; that nothing works afterwards we found in no report.
Stage: decomposition (functionalization; `backend="aot_eager"`). Needs torch alone; exits 1 while the defect is there.
"""

import sys

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def program(x):
    with torch.inference_mode():
        return Double.apply(x.detach()) + 0


try:
    torch.compile(program, backend="aot_eager")(torch.ones(2, requires_grad=True))
    print("it compiles")
except Exception as error:
    print("the compile raises", type(error).__name__, " ".join(str(error).split())[:120])
try:
    print("afterwards torch computes", (torch.ones(2) + 1).tolist())
except RuntimeError as error:
    print("afterwards torch.ones(2) + 1 raises", str(error).splitlines()[0][:120])
    sys.exit(1)
