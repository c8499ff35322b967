"""A view of an intermediate is returned beside the same detached: it comes back as a leaf, and its gradient does not reach the input. With one more
result the call raises."""

import torch


def one(x):
    y = x.sin()
    return y[0:2], y.detach()


def more(x):
    y = x.sin()
    return y[:2], y[2:], y.detach(), x.cos()


def complex_parts(x):
    y = torch.complex(x, x * 2)
    return torch.view_as_real(y)[0], y.detach()


wrong = []
for program in (one, more, complex_parts):
    torch.compiler.reset()
    x = torch.ones(4, requires_grad=True)
    try:
        torch.compile(program)(x)[0].sum().backward()
    except Exception as error:
        wrong.append(f"{program.__name__}: {type(error).__name__}: {str(error)[:60]}")
    else:
        wrong += [f"{program.__name__}: no gradient"] if x.grad is None else []
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
