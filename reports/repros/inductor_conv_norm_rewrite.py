"""With `efficient_conv_bn_eval_fx_passes`, a batch norm after a convolution or a linear layer is folded into its weight where it must not be:
where the input is written to in between, where the norm is over another dim than the features (sequences, an image without batch), in a
transposed convolution of groups, in bfloat16 with float32 statistics. See pytorch#196165 for arguments given by keyword."""

import torch
from torch.nn import functional as F

torch._inductor.config.efficient_conv_bn_eval_fx_passes = True
torch.manual_seed(0)
MEAN, VARIANCE = torch.randn(4), torch.rand(4) + 1


def norm(x):
    return F.batch_norm(x, MEAN, VARIANCE, None, None, False, 0.1, 1e-5)


def written(x, weight, bias):
    y = F.conv2d(x, weight, bias)
    x.zero_()
    return norm(y)


def plain(x, weight, bias):
    return norm(F.conv2d(x, weight, bias))


def linear(x, weight, bias):
    return norm(F.linear(x, weight, bias))


def turned(x, weight, bias):
    return norm(F.conv_transpose2d(x, weight, bias, 1, 0, 0, 2))


R = torch.randn
calls = {
    "input written in between": (written, R(2, 3, 8, 8), R(4, 3, 3, 3), R(4)),
    "linear of sequences": (linear, R(2, 4, 5), R(4, 5), R(4)),
    "linear of sequences, other sizes": (linear, R(2, 4, 5), R(6, 5), R(6)),
    "image without batch": (plain, R(3, 6, 6), R(4, 3, 3, 3), R(4)),
    "transposed convolution of groups": (turned, R(2, 4, 4, 4), R(4, 2, 3, 3), R(4)),
    "bfloat16": (plain, R(2, 3, 8, 8).bfloat16(), R(4, 3, 3, 3).bfloat16(), R(4).bfloat16()),
}
found = []
for name, (call, x, weight, bias) in calls.items():
    torch._dynamo.reset()
    right = call(x.clone(), weight, bias)
    try:
        made = torch.compile(call)(x.clone(), weight, bias)
        if not torch.allclose(right, made, rtol=1e-2, atol=1e-2):
            found.append(f"{name}: wrong values")
    except Exception as error:
        found.append(f"{name}: {type(error).__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
