"""A write that autograd is not told of (.data), to a part of a split or to what a function gave back: eager writes, the compiled program raises."""

import torch


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


def program(y):
    y.data.mul_(2)


wrong = []
for name, part in (
    ("split", lambda x: x.split(2)[1]),
    ("chunk", lambda x: x.chunk(2)[0]),
    ("unbind", lambda x: x.view(2, 2).unbind()[0]),
    ("given back", Same.apply),
):
    torch.compiler.reset()
    for run in (program, torch.compile(program)):
        y = part(torch.ones(4, requires_grad=True) * 1.0)
        try:
            run(y)
        except RuntimeError as error:
            wrong.append(f"{name}: {str(error)[:60]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
