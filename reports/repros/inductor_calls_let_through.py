"""Calls that eager refuses, for their dtypes, sizes or settings, and that are compiled and run: each line that is printed is one."""

import warnings

import torch
from torch.nn import functional as F

warnings.simplefilter("ignore")


def f(*size):
    return torch.ones(*size)


def d(*size):
    return torch.ones(*size, dtype=torch.float64)


def h(*size):
    return torch.ones(*size, dtype=torch.float16)


def c(*size):
    return torch.ones(*size, dtype=torch.complex64)


def i(*size):
    return torch.zeros(*size, dtype=torch.int64)


def i32(*size):
    return torch.zeros(*size, dtype=torch.int32)


def i8(*size):
    return torch.zeros(*size, dtype=torch.int8)


def b(*size):
    return torch.ones(*size, dtype=torch.bool)


calls = """
F.adaptive_max_pool2d(i(1, 2, 4, 4), 2)
F.avg_pool2d(b(1, 2, 4, 4), 2)
F.max_pool2d(b(1, 2, 4, 4), 2)
F.max_pool3d(b(1, 2, 4, 4, 4), 2)
F.avg_pool3d(f(1, 2, 4, 4, 4), 2, divisor_override=0)
F.fractional_max_pool3d(f(1, 2, 4, 4, 4), 2, output_size=2, _random_samples=f(1, 2, 2))
F.batch_norm(f(2, 3), d(3), d(3))
F.batch_norm(f(2, 3), f(3), f(3), weight=d(3))
F.batch_norm(i(2, 3), f(3), f(3))
F.layer_norm(f(2, 3), (3,), weight=d(3))
F.celu(f(3), alpha=0.0)
F.conv1d(b(1, 4, 8), b(4, 4, 3))
F.conv1d(f(1, 4, 8), d(4, 4, 3))
F.conv1d(f(1, 4, 8), h(4, 4, 3))
F.conv2d(i(1, 4, 8, 8), f(4, 4, 3, 3))
F.conv3d(f(1, 4, 8, 8, 8), d(4, 4, 3, 3, 3))
F.conv_transpose2d(f(1, 4, 8, 8), d(4, 2, 3, 3))
F.cross_entropy(f(2, 3), i32(2))
F.cross_entropy(i(2, 3), i(2))
F.nll_loss(i(2, 3), i(2))
F.embedding(i8(2), f(3, 2))
F.one_hot(i(3), 0)
F.glu(i(4))
F.rrelu(i(3), training=True)
F.softmax(f(3), dim=0, dtype=torch.int64)
F.softmin(i(3), dim=0)
F.scaled_dot_product_attention(i(1, 1, 2, 4), i(1, 1, 2, 4), i(1, 1, 2, 4))
F.interpolate(f(1, 1, 0, 4), size=2, mode="bilinear")
F.interpolate(b(1, 1, 4, 4), size=2)
F.grid_sample(f(1, 1, 3, 3), d(1, 2, 2, 2))
F.pad(b(1, 1, 3), (1, 1), mode="reflect")
f(3).put(i(2), d(2))
torch.index_add(f(3, 3), 0, i(2), d(2, 3))
torch.index_copy(f(3, 3), 0, i(2), d(2, 3))
torch.index_copy(f(3, 3), 0, i32(2), f(2, 3))
torch.index_put(f(3, 3), (i(2),), d(2, 3))
torch.index_select(f(()), 0, i(2))
torch.select(f(3), 0, 3)
torch.repeat_interleave(f(3), i(3) + 1, output_size=7)
torch.as_strided(f(3), (2,), (-1,))
torch.empty_strided((2,), (-1,)) * 0
i(2).div_(2)
torch.addcdiv(b(2), b(2), b(2))
torch.lerp(i(2), i(2), 0.5)
torch.lerp(b(2), b(2), 0.5)
torch.argmax(b(3))
torch.argmin(b(3))
torch.nansum(c(3))
torch.mv(f(2, 3), d(3))
torch.addmv(f(2), f(2, 3), d(3))
torch.bmm(f(2, 3, 4), d(2, 4, 3))
torch.mvlgamma(f(2) + 5, 0)
torch.heaviside(f(2), d(2))
torch.special.xlog1py(c(2), c(2))
torch._assert_async(f(1) * 0)
torch._assert_async(f(2))
torch.native_dropout(f(3), 1.5, True)[0] * 0
torch.bernoulli(i(2))
torch.normal(c(2), c(2)) * 0
torch.normal(f(2), -f(2)) * 0
i(2).uniform_()
torch.rand(2, dtype=torch.int64)
torch.rand_like(i(2))
torch.randint(0, 300, (2,), dtype=torch.uint8) * 0
torch.dropout(f(3), 1.5, True) * 0
F.scaled_dot_product_attention(f(1, 1, 2, 4), f(1, 1, 2, 4), f(1, 1, 2, 4), dropout_p=1.5) * 0
torch.istft(c(3, 3), 4, window=f(4) * 0) * 0
torch.as_strided(f(3), (3, 3), (1, 1))
torch.squeeze(f(3), (0, 0))
torch.squeeze(f(1, 1), (0, -2))
"""
known = {"torch": torch, "F": F, "f": f, "d": d, "h": h, "c": c, "i": i, "i32": i32, "i8": i8, "b": b}
given = []
for text in calls.strip().splitlines():
    call = eval(f"lambda: {text}", known)
    try:
        call()
        continue  # this release takes it in eager, too
    except Exception:  # eager's errors are of many kinds: any of them is a refusal
        torch._dynamo.reset()
    try:
        torch.compile(lambda x, call=call: (x + 1, call()))(torch.ones(2))
    except Exception:
        continue
    print(text)
    given.append(text)
if given:
    raise SystemExit(f"torch {torch.__version__}: {len(given)} calls are let through")
