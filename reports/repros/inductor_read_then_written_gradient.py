"""`y = w * b.sin(); b.add_(1); return y`: the backward computes sin(b) anew, from the new b, so that the gradient of w is wrong. No error.
The pull request pytorch#197039 describes it; there is no issue."""

import torch


def added(w, b):
    y = w * b.sin()
    b.add_(1)
    return y


def through_view(w, b):
    flat = b.view(-1)
    y = w * b.exp()
    flat.zero_()
    return y


def between(w, b):
    b.add_(1)
    y = w * b.sin()
    b.add_(1)
    return y


class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.ones(6))

    def forward(self, w, b):
        y = w * self.count.log1p()
        self.count.add_(1)
        return y


found = []
for make in (lambda: added, lambda: through_view, lambda: between, Counted):
    torch._dynamo.reset()
    torch.manual_seed(0)
    w, b = torch.randn(4, 6, requires_grad=True), torch.randn(4, 6)
    eager, call = make(), make()
    want = torch.autograd.grad(eager(w, b.clone()).sum(), w)[0]
    got = torch.autograd.grad(torch.compile(call)(w, b.clone()).sum(), w)[0]
    if not torch.allclose(want, got):
        found.append(getattr(call, "__name__", type(call).__name__))
if found:
    raise SystemExit(f"torch {torch.__version__}: gradients of the new values: " + ", ".join(found))
