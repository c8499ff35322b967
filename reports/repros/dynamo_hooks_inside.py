"""Hooks that the compiled program registers on an intermediate: removed, several on one tensor, and a write behind one."""

import torch


def removed(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 10).remove()
    return y.sin()


def three(x):
    y = x.sin()
    y.register_hook(lambda grad: grad + 1)
    y.register_hook(lambda grad: grad * grad)
    y.register_hook(lambda grad: grad - 3)
    return y * 2


def written(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    y.mul_(3)
    return y


def gradient(program) -> torch.Tensor | str:
    torch._dynamo.reset()
    x = torch.linspace(0, 1, 4, requires_grad=True)
    try:
        program(x).sum().backward()
    except Exception as error:
        return type(error).__name__
    return x.grad


found = []
for program in (removed, three, written):
    want, got = gradient(program), gradient(torch.compile(program))
    if isinstance(got, str) or not torch.allclose(want, got):
        found.append(f"{program.__name__}: {got}, eager {want}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
