"""The place of the smallest of bools that a comparison made. A neighbour of pytorch#184893."""

import torch

torch.manual_seed(0)
x = torch.randn(9, 33)
call = lambda x: (x > 0.5).min(1).indices  # noqa: E731
eager, compiled = call(x), torch.compile(call)(x)
rows = torch.arange(len(x))
if (x > 0.5)[rows, compiled].ne((x > 0.5)[rows, eager]).any() or not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: {compiled.tolist()}, eager {eager.tolist()}")
