"""With `cpp_wrapper`: histogramdd, whose operators take and give lists, does not run."""

import torch

torch._inductor.config.cpp_wrapper = True


def program(x):
    return torch.histogramdd(x, [2, 3], range=[-1.0, 1.0, -2.0, 2.0])[0]


x = torch.linspace(-1, 1, 8).view(4, 2)
eager, compiled = program(x), torch.compile(program)(x)
if not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: eager {eager.tolist()}, compiled {compiled.tolist()}")
