"""`del x.grad` inside a compiled function does nothing: gradients pile up."""

import torch


def program(x):
    del x.grad
    return x * 2


left = []
for run in (program, torch.compile(program, backend="aot_eager")):
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.ones(3)
    run(x)
    left.append(x.grad is None)
print(f"gradient gone: {left[1]}, eager {left[0]}")
raise SystemExit(left[0] != left[1])
