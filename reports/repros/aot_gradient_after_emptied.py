"""An input's storage is emptied in the program after its use: the backward computes from it again what eager had kept."""

import torch


def program(x, y):
    result = x * y.sin()
    y.untyped_storage().resize_(0)
    return result


told = []
for run in (program, torch.compile(program, backend="aot_eager")):
    x, y = torch.ones(4, requires_grad=True), torch.ones(4)
    run(x, y).sum().backward()
    told.append(x.grad.tolist())
if told[0] != told[1]:
    raise SystemExit(f"torch {torch.__version__}: eager {told[0]}, compiled {told[1]}")
