"""An autograd.Function that overrides apply: the compiled program calls the inherited one."""

import torch

x = torch.arange(3.0)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by=2):
        return x * by

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


class Tripled(Doubled):
    @classmethod
    def apply(cls, x, by=3):
        return super().apply(x, by)


class Other(Doubled):
    @staticmethod
    def apply(x):
        return x + 100


wrong = []
for kind in (Tripled, Other):
    torch.compiler.reset()
    try:
        same = torch.equal(torch.compile(lambda x, kind=kind: kind.apply(x))(x), kind.apply(x))
    except Exception as error:
        wrong.append(f"{kind.__name__}: {type(error).__name__}")
    else:
        wrong += [] if same else [kind.__name__]
compiled = torch.compile(lambda x: Doubled.apply(x))
compiled(x)
Doubled.apply = staticmethod(lambda x: x + 100)
if not torch.equal(compiled(x), x + 100):
    wrong.append("replaced after the first call")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
