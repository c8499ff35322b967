"""angle of a complex tensor that is stored transposed is contiguous in eager; the compiled call keeps the strides of the input."""

import torch

x = torch.ones(4, 3, dtype=torch.complex64).t()
eager, compiled = torch.angle(x), torch.compile(torch.angle)(x)
if eager.stride() != compiled.stride():
    raise SystemExit(f"torch {torch.__version__}: eager {eager.stride()}, compiled {compiled.stride()}")
