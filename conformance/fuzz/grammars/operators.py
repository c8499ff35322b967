"""One operator over dtype pairs, layouts, special values and shapes, and what is computed from its result."""

from __future__ import annotations

import re

from conformance.fuzz.grammar import Choices, Grammar, names

TEXT = """
def f(x, y):
    $before
    r = $op
    $follow
    return r

def inputs():
    x = $x_values.to($x_dtype)
    y = $y_values.to($y_dtype)
    $layout
    return x, y
"""
BINARY = names(
    "x + y",
    "x - y",
    "x * y",
    "x / y",
    "x // y",
    "torch.div(x, y, rounding_mode='trunc')",
    "torch.div(x, y, rounding_mode='floor')",
    "torch.remainder(x, y)",
    "torch.fmod(x, y)",
    "torch.atan2(x, y)",
    "torch.copysign(x, y)",
    "torch.ldexp(x, y)",
    "torch.maximum(x, y)",
    "torch.minimum(x, y)",
    "torch.fmax(x, y)",
    "torch.fmin(x, y)",
    "torch.hypot(x, y)",
    "torch.heaviside(x, y)",
    "torch.xlogy(x, y)",
    "torch.logaddexp(x, y)",
    "torch.float_power(x, y)",
    "torch.where(x > 1, x, y)",
    "torch.where(x > 1, x, 2.5)",
    "torch.gcd(x, y)",
    "torch.bitwise_and(x, y)",
    "x << 1",
    "x >> y",
    "x ^ y",
    "x == y",
    "x < y",
    "torch.logical_xor(x, y)",
    "torch.isclose(x, y)",
    "torch.addcmul(x, x, y, value=2)",
    "torch.addcdiv(x, x, y, value=2)",
    "torch.lerp(x, y, 0.25)",
    "torch.clamp(x, min=y)",
    "torch.clip(x, y, y + 1)",
    "torch.rsub(x, y, alpha=2)",
    "torch.add(x, y, alpha=3)",
    "F.mse_loss(x, y)",
    "F.smooth_l1_loss(x, y)",
    "F.huber_loss(x, y, delta=0.5)",
    "F.l1_loss(x, y, reduction='none')",
    "F.kl_div(x, y, reduction='none')",
    "torch.cat([x.flatten(), y.flatten()])",
    "torch.stack([x.flatten()[:1], y.flatten()[:1]])",
    "torch.outer(x.flatten(), y.flatten())",
    "torch.addr(torch.zeros(x.numel(), y.numel(), dtype=x.dtype), x.flatten(), y.flatten(), beta=0)",
    "torch.cross(x.flatten()[:3], y.flatten()[:3], dim=0)",
    "torch.bucketize(x, torch.sort(y.flatten()).values)",
    "torch.searchsorted(torch.sort(y.flatten()).values[1:], x)",
    "torch.isin(x, y)",
    "torch.take(x, y.flatten().long() % max(x.numel(), 1))",
    "torch.polar(x, y)",
    "torch.complex(x, y)",
    "torch.dist(x, y)",
    "torch.masked_fill(x, y > 1, 2)",
    "torch.tensordot(x.flatten(), y.flatten()[:1].expand(x.numel()), 1)",
    "torch.kron(x.flatten()[:2], y.flatten()[:2])",
    "torch.broadcast_tensors(x, y)[1] + 0",
)
UNARY = names(
    "x.abs()",
    "-x",
    "x.ceil()",
    "x.floor()",
    "x.frac()",
    "x.trunc()",
    "x.round()",
    "x.round(decimals=1)",
    "x.sign()",
    "x.sgn()",
    "x.reciprocal()",
    "x.sqrt()",
    "x.rsqrt()",
    "x.square()",
    "x ** 3",
    "x ** 0.5",
    "2 ** x",
    "x.exp2()",
    "x.log1p()",
    "x.sigmoid()",
    "x.tanh()",
    "x.erf()",
    "x.logit(0.1)",
    "x.sinc()",
    "x.angle()",
    "x.signbit()",
    "x.isinf()",
    "x.nan_to_num(1, 2, 3)",
    "x.clamp(0, 1)",
    "x.clamp(min=1.5)",
    "x.clamp(-300, 300)",
    "x.remainder(1.7)",
    "x.fmod(1.7)",
    "x % 3",
    "x // 2",
    "x * 0.1",
    "x + 1.5",
    "x / 3",
    "torch.copysign(x, -0.0)",
    "torch.true_divide(x, 2)",
    "F.relu(x)",
    "F.elu(x)",
    "F.gelu(x)",
    "F.silu(x)",
    "F.softplus(x)",
    "F.hardtanh(x)",
    "F.hardswish(x)",
    "F.hardsigmoid(x)",
    "F.leaky_relu(x, 0.2)",
    "F.threshold(x, 1, 20)",
    "F.softshrink(x)",
    "F.celu(x)",
    "F.mish(x)",
    "F.relu6(x)",
    "F.logsigmoid(x)",
    "F.rrelu(x, training=False)",
    "x.cumsum(0)",
    "x.cumprod(0)",
    "x.logcumsumexp(0)",
    "x.sum()",
    "x.sum(0)",
    "x.prod()",
    "x.mean(0)",
    "x.amax(0)",
    "x.any()",
    "x.all(0)",
    "x.count_nonzero()",
    "x.var(0)",
    "x.std()",
    "x.norm()",
    "x.norm(p=0)",
    "x.norm(p=float('inf'), dim=0)",
    "x.nansum()",
    "x.softmax(0)",
    "x.log_softmax(0)",
    "x.logsumexp(0)",
    "x.diff(dim=0)",
    "x.flip(0)",
    "x.roll(1, 0)",
    "x.tril()",
    "x.repeat_interleave(2, 0)",
    "x.tile(2)",
    "x.rot90()",
    "x.diag_embed()",
    "x.put(torch.tensor([1, 0]), x.flatten()[:2])",
    "x.index_fill(0, torch.tensor([0]), 3)",
    "x.masked_select(x > 1)",
    "x.nonzero()",
    "x.histc(4, 0, 4)",
    "x.new_full((2,), 2.7)",
    "torch.full_like(x, 2.7)",
    "torch.zeros_like(x) + x",
    "torch.ones_like(x) * x",
    "torch.empty_like(x).copy_(x)",
    "torch.arange(3, dtype=x.dtype)",
    "torch.linspace(0, 5, 4, dtype=x.dtype)",
    "torch.cat([torch.empty(0, dtype=x.dtype), x.flatten()])",
    "torch.cat([x[:, :0], x], 1)",
    "torch.cat([x, x.flip(0)], 0)",
    "torch.stack([x, x], -1)",
    "torch.constant_pad_nd(x, (1, 1), 2)",
    "F.pad(x[None], (1, 1), mode='reflect')",
    "F.normalize(x, dim=0)",
    "F.layer_norm(x, x.shape[-1:])",
    "F.dropout(x, 0.0)",
    "F.one_hot(x.long().clamp(0, 3), 4)",
    "x.conj() * 2",
    "x.to(torch.bfloat16).to(x.dtype)",
    "x.to(torch.int8).to(torch.float32)",
    "x.view_as(x).contiguous()",
    "x.bool()",
    "x.byte()",
    "torch.real(x)",
    "torch.polygamma(1, x)",
    "torch.special.xlog1py(x, x)",
    "torch.special.entr(x)",
    "torch.special.i0e(x)",
    "torch.nn.functional.glu(x)",
    "torch.unflatten(x, 1, (2, 2)).sum(2)",
    "torch.trapezoid(x)",
    "torch.cov(x)",
    "torch.renorm(x, 2, 0, 1)",
    "torch.cdist(x, x)",
    "torch.baddbmm(x[None], x[None, :, :3], x[None], beta=0)",
    "torch.quantile(x, 0.5, dim=0)",
    "torch.vander(x.flatten()[:3])",
    "torch.count_nonzero(x, 1)",
    "torch.aminmax(x, dim=0).max",
    "torch.std_mean(x, 0)[1]",
    "torch.fake_quantize_per_tensor_affine(x, 0.5, 0, 0, 15)",
)
FLOATS = ("torch.float32", "torch.float16", "torch.bfloat16", "torch.float64")
INTEGERS = ("torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8", "torch.bool")
DTYPES = names(*FLOATS, *INTEGERS, "torch.complex64")
VALUES = {
    "small": "torch.tensor([[0, 1, 2, 3], [4, 5, 3, 1], [2, 0, 1, 4]])",
    "signed": "torch.tensor([[0.0, -1, 2, -3], [4, -5, 3, 1], [-2, 0, 1, -4]])",
    "halves": "torch.tensor([[0.5, -1.5, 2.5, -0.5], [4.5, -0.25, 3.5, 1.75], [-2.5, 0.75, 1.5, -4.5]])",
    "zeros": "torch.tensor([[0.0, -0.0, 0.0, -0.0], [-0.0, 1.0, -1.0, 0.0], [-0.3, 0.4, -0.5, -0.9]])",
    "special": "torch.tensor([[0.0, -0.0, float('inf'), -float('inf')], [1.0, -1.0, 2.5, -2.5],"
    " [float('nan'), 3.0, 0.5, -0.5]])",
    "large": "torch.tensor([[100, 120, 127, 60], [90, 33, 77, 101], [99, 1, 64, 126]])",
    "0-d": "torch.tensor(3)",
    "one row": "torch.tensor([[1, 2, 3, 4]])",
    "one column": "torch.tensor([[1.0], [2.0], [-3.0]])",
    "empty": "torch.ones(0, 4)",
    "one": "torch.tensor([2.5])",
    "long": "torch.arange(68).remainder(5).view(17, 4)",
}
NONZERO = {
    "small": "torch.tensor([[1, 2, 3, 4], [2, 1, 5, 3], [4, 2, 1, 3]])",
    "signed": "torch.tensor([[1.0, -1, 2, -3], [4, -5, 3, 1], [-2, 2, 1, -4]])",
    "halves": "torch.tensor([[0.5, -1.5, 2.5, -0.5], [4.5, -0.25, 3.5, 1.75], [-2.5, 0.75, 1.5, -4.5]])",
    "0-d": "torch.tensor(2)",
    "0-d half": "torch.tensor(1.5)",
    "one row": "torch.tensor([[1, 2, 3, 4]])",
    "one column": "torch.tensor([[1.0], [2.0], [3.0]])",
    "large": "torch.tensor([[100, 120, 127, 60], [90, 33, 77, 101], [99, 1, 64, 126]])",
    "special": "torch.tensor([[0.5, -0.5, float('inf'), -float('inf')], [1.0, -1.0, 2.5, -2.5],"
    " [float('nan'), 3.0, 0.5, -0.5]])",
}
LAYOUTS = {
    "contiguous": "",
    "x transposed": "x = x.t().contiguous().t() if x.dim() == 2 else x",
    "both transposed": "x, y = (t.t().contiguous().t() if t.dim() == 2 else t for t in (x, y))",
    "every other": "x = x.repeat_interleave(2, -1)[..., ::2] if x.dim() else x",
    "offset": "x = torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape) if x.numel() else x",
    "expanded": "x = x[:1].expand(3, *x.shape[1:]) if x.dim() == 2 else x",
    "inner": "x = F.pad(x, (1, 1))[..., 1:-1] if x.dim() and x.dtype != torch.bool else x",
}
FOLLOWS = {
    "nothing": "",
    "wraps": "r = r * 200 + 100",
    "reciprocal": "r = 1 / r",
    "sign": "r = torch.copysign(torch.ones_like(r), r)",
    "compared": "r = r < 4",
    "summed": "r = r.sum()",
    "to int16": "r = r.to(torch.int16)",
    "to half": "r = r.half()",
    "plus x": "r = r + x",
    "times float": "r = r * 0.5",
    "both": "r = (r, r.sum(), x + y)",
    "zeros added": "r = r + torch.zeros_like(r)",
    "transposed": "r = r.mT.contiguous() if r.dim() > 1 else r",
    "view": "r = r.reshape(-1)[1:]",
    "ratio of itself": "r = (r, torch.atan2(torch.zeros_like(r), r))",
}
BEFORES = {
    "nothing": "",
    "x doubled": "x = x + x",
    "transposed sum": "x = x.t().contiguous().t()",
    "x made": "x = x.clone()",
}
EXACT = {"torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8", "torch.bool"}


def allowed(choices: Choices) -> bool:
    """No casts of what an integer cannot hold, which nobody promises; no reciprocal of what rounding may make zero."""
    for which in ("x", "y"):
        dtype, values = choices[f"{which}_dtype"], choices[f"{which}_values"]
        if values == "special" and dtype in EXACT:
            return False
        if values in ("signed", "zeros", "halves", "one column") and dtype in ("torch.uint8", "torch.bool"):
            return False
    both = (choices["x_dtype"], choices["y_dtype"]) if re.search(r"\by\b", choices["op"]) else (choices["x_dtype"],)
    exact = {*both} <= EXACT
    special = "special" in (choices["x_values"], choices["y_values"])
    if ("int8" in choices["op"] or "byte" in choices["op"] or "long()" in choices["op"]) and not exact:
        return False
    if choices["follow"] == "to int16" and not exact:
        return False
    rounded = {*both} & {"torch.float16", "torch.bfloat16"} and choices["op"] not in SIGN_OPS
    if choices["follow"] in ("reciprocal", "sign", "compared", "ratio of itself") and (rounded or special):
        return False
    wide = choices["x_values"] == "large" and choices["follow"] == "to half"
    return not wide and not (choices["x_values"] == "long" and choices["y_values"] not in ("small", "0-d", "0-d half"))


GRADIENTS = """
def f(x, y):
    $before
    r = $op
    return r

def inputs():
    x = $x_values.to($x_dtype)
    y = $y_values.to($x_dtype)
    $layout
    return tuple(t.detach().requires_grad_() for t in (x, y))

def loss(out):
    return (out * torch.arange(1.0, 1 + out.numel()).view(out.shape)).sum()

def after(out, args):
    return out, [t.grad for t in args]
"""
SMOOTH = {  # apart from zero and from one another: a gradient is then one number
    "halves": "torch.tensor([[0.5, -1.5, 2.5, -0.75], [4.5, -0.25, 3.5, 1.75], [-2.5, 0.7, 1.25, -4.5]])",
    "positive": "torch.tensor([[0.5, 1.5, 2.5, 0.75], [4.5, 0.25, 3.5, 1.75], [2.75, 0.7, 1.25, 5.5]])",
    "long": "torch.arange(1, 69).view(17, 4) * 0.37 - 9.1",
    "one row": "torch.tensor([[1.5, 2.25, 3.5, 4.75]])",
    "empty": "torch.ones(0, 4)",
}


def differentiable(choices: Choices) -> bool:
    """Both inputs have the same sizes, or one of them broadcasts."""
    sizes = {choices["x_values"], choices["y_values"]} - {"0-d", "one row", "one column"}
    return len(sizes & {"halves", "positive", "long", "empty"}) < 2 or sizes <= {"halves", "positive"}


SIGN_OPS = frozenset(("x.ceil()", "x.floor()", "x.frac()", "x.trunc()", "x.round()", "F.relu(x)", "-x", "x.abs()"))
RUNGS = ("decompositions", "inductor")
SLOTS = {
    "before": BEFORES,
    "x_dtype": DTYPES,
    "y_dtype": DTYPES,
    "x_values": VALUES,
    "y_values": NONZERO,
    "layout": LAYOUTS,
    "follow": FOLLOWS,
}
GRAMMARS = [
    Grammar("pairs", TEXT, {"op": BINARY, **SLOTS}, RUNGS, ("op",), allowed, signs=True),
    Grammar(
        "single",
        TEXT,
        {"op": UNARY, **SLOTS, "y_dtype": names("torch.float32"), "y_values": {"0-d": "torch.tensor(2)"}},
        RUNGS,
        ("op",),
        allowed,
        signs=True,
    ),
    Grammar(
        "gradients",
        GRADIENTS,
        {
            "op": {key: text for key, text in {**UNARY, **BINARY}.items() if " < " not in key and "==" not in key},
            "before": BEFORES,
            "x_dtype": names("torch.float32", "torch.float64"),
            "x_values": SMOOTH,
            "y_values": {**SMOOTH, "0-d": "torch.tensor(1.5)", "one column": "torch.tensor([[1.0], [2.0], [3.5]])"},
            "layout": LAYOUTS,
        },
        ("decompositions", "inductor"),
        ("op",),
        differentiable,
    ),
]
