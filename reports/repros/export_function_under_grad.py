"""torch.export (2.14) fails an assertion on torch.func.grad of a torch.autograd.Function: "Current active mode … not registered".

torch.compile takes the same program. Torch-TensorRT and AutoDeploy have no other way in than torch.export."""

import torch


class Double(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Gradient(torch.nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda t: Double.apply(t).sum())(x)


x = torch.randn(3)
Gradient()(x)
try:
    torch.export.export(Gradient(), (x,), strict=False)
except AssertionError as error:
    raise SystemExit(f"AssertionError: {str(error)[:120]}") from None
