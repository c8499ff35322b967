"""Scaled dot product attention: which kernel the described GPU would choose, and what that kernel computes.

torch chooses in C++ (`sdp_utils.cpp`: `select_sdp_backend`), and asks the driver there. The same rules stand here as a
table: a kernel is chosen if all of its conditions hold, in torch's order of preference. The kernels themselves exist
for CUDA only; when generated code calls one, the CPU computes its outputs from the definition of attention.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from conformance.headless.device_queries import answered
from conformance.headless.errors import NotInterpretable
from conformance.headless.seam import seam
from conformance.seam import MissingName
from conformance.target import Device
from conformance.torch_seam import forget_dispatch, pytree, schema_of

aten = torch.ops.aten
MATH, FLASH, EFFICIENT, CUDNN = 0, 1, 2, 3  # at::SDPBackend
HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Call:
    """The arguments of one call, and the questions that the rules ask of them."""

    device: Device
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    dropout: float
    causal: bool
    gqa: bool

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.query, self.key, self.value

    @cached_property
    def sm(self) -> int:
        return self.device.major * 10 + self.device.minor

    def four_dims(self) -> bool:
        return all(t.dim() == 4 for t in self.tensors)

    def dtypes(self, *allowed: torch.dtype) -> bool:
        return all(t.dtype == self.query.dtype for t in self.tensors) and self.query.dtype in allowed

    def not_empty(self) -> bool:
        return all(t.shape[-2] != 0 for t in self.tensors)

    def last_dim_dense(self, ignore_single: bool) -> bool:
        dense = all(t.stride(-1) == 1 or (ignore_single and t.shape[-1] == 1) for t in self.tensors)
        return dense and (
            self.mask is None or self.mask.stride(-1) == 1 or (ignore_single and self.mask.shape[-1] == 1)
        )

    def heads_fit(self, grouped: bool, same: bool = True) -> bool:
        q, k, v = (t.shape[-3] for t in self.tensors)
        if not all(t.shape[0] == self.query.shape[0] for t in self.tensors):
            return False
        if self.gqa and grouped:
            return (k == v or not same) and q % k == 0 and q % v == 0
        return q == k == v

    def trains(self) -> bool:
        return torch.is_grad_enabled() and any(t.requires_grad for t in self.tensors)

    def mask_fits(self) -> bool:
        if self.mask is None:
            return True
        sizes, (b, h, s_q, _) = self.mask.shape, self.query.shape
        s_k = self.key.shape[2]
        if self.mask.requires_grad or sizes[-2] not in (1, s_q) or sizes[-1] not in (1, s_k):
            return False
        return len(sizes) == 2 or (len(sizes) == 4 and sizes[0] in (1, b) and sizes[1] in (1, h))


Condition = Callable[[Call], bool]


def _square_if_causal(c: Call) -> bool:
    return not c.causal or c.query.shape[-2] == c.key.shape[-2]


def _flash_head_dim(c: Call) -> bool:
    sizes = {int(t.shape[-1]) for t in c.tensors}
    return len(sizes) == 1 and max(sizes) <= 256


def _flash_training(c: Call) -> bool:
    """Large heads cannot be trained on the smaller chips."""
    size = c.query.shape[-1]
    large = 192 < size <= 224 or (size > 224 and c.dropout > 0)
    return not (c.trains() and large and (86 <= c.sm <= 89 or 120 <= c.sm <= 121))


def _efficient_head_dim(c: Call) -> bool:
    alignment = 8 if c.query.dtype in HALF else 4
    sizes = c.query.shape[-1], c.value.shape[-1]
    return c.query.shape[-1] == c.key.shape[-1] and all(size > 0 and size % alignment == 0 for size in sizes)


def _cudnn_shapes(c: Call) -> bool:
    s_q, s_k, d_qk, d_v = c.query.shape[2], c.key.shape[2], c.query.shape[3], c.value.shape[3]
    limit = 256 if c.sm == 90 else 192 if c.device.major == 10 and (d_qk, d_v) == (192, 128) else 128
    sizes_fit = d_qk <= limit and d_v <= limit and d_qk % 8 == 0 and d_v % 8 == 0
    return sizes_fit and s_k != 1 and not (s_q == 1 and c.dropout != 0)


def _not_deterministic(c: Call) -> bool:
    return not torch.are_deterministic_algorithms_enabled() or torch.is_deterministic_algorithms_warn_only_enabled()


def _known_chip(c: Call) -> bool:
    return 80 <= c.sm <= 121


CONDITIONS: dict[int, tuple[Condition, ...]] = {
    FLASH: (
        lambda c: torch.backends.cuda.flash_sdp_enabled(),
        Call.four_dims,
        lambda c: c.mask is None,
        _flash_head_dim,
        _known_chip,
        _flash_training,
        _square_if_causal,
        lambda c: c.dtypes(*HALF),
        lambda c: c.heads_fit(grouped=True),
        Call.not_empty,
        lambda c: c.last_dim_dense(ignore_single=True),
    ),
    EFFICIENT: (
        lambda c: torch.backends.cuda.mem_efficient_sdp_enabled(),
        _known_chip,
        Call.four_dims,
        _efficient_head_dim,
        Call.not_empty,
        lambda c: c.last_dim_dense(ignore_single=False),
        lambda c: c.heads_fit(grouped=False),
        lambda c: c.dtypes(*HALF, torch.float32),
    ),
    CUDNN: (
        lambda c: torch.backends.cuda.cudnn_sdp_enabled(),
        Call.four_dims,
        _not_deterministic,
        lambda c: c.dtypes(*HALF),
        Call.mask_fits,
        _known_chip,
        Call.not_empty,
        lambda c: c.last_dim_dense(ignore_single=True),
        lambda c: c.heads_fit(grouped=True, same=False),
        _cudnn_shapes,
    ),
    MATH: (lambda c: torch.backends.cuda.math_sdp_enabled(),),
}


def cudnn_version() -> tuple[int, ...]:
    """The cuDNN that torch was built for: which one lies on this machine says nothing of the described one."""
    return tuple(seam.cudnn_version()) if seam.has("cudnn_version") else (0,)


def preference(device: Device) -> list[int]:
    """torch's order: cuDNN first on Hopper and datacenter Blackwell, if the installed cuDNN is new enough."""
    order = [int(backend) for backend in seam.sdp_priority() if int(backend) in CONDITIONS]
    untouched = order.index(CUDNN) > order.index(MATH)
    recent = cudnn_version() > (9, 15, 0)
    if untouched and recent and device.major in (9, 10) and device.minor in (0, 3):
        return [CUDNN, *(backend for backend in order if backend != CUDNN)]
    return order


def choice(call: Call) -> int:
    for backend in preference(call.device):
        if all(condition(call) for condition in CONDITIONS[backend]):
            return backend
    raise RuntimeError("No available kernel. Aborting execution.")  # torch's own words


# ------------------------------------------------------------------------------------ the operator itself


@contextlib.contextmanager
def choosing(device: Device) -> Iterator[None]:
    """While open, attention on CUDA tensors is decided for this device."""

    def attend(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> torch.Tensor:
        scale, gqa = options.get("scale"), bool(options.get("enable_gqa"))
        call = Call(device, query, key, value, attn_mask, dropout_p, is_causal, gqa)
        kernel = answered("attention kernel", lambda other: choice(replace(call, device=other)), device)
        return _attend(kernel, call, scale)

    operator = aten.scaled_dot_product_attention.default
    library = torch.library.Library("aten", "IMPL")
    try:
        for key in ("AutogradCUDA", "CUDA"):
            library.impl("scaled_dot_product_attention", attend, key)
    except (AttributeError, RuntimeError) as error:
        seam.close_library(library)
        raise MissingName(
            f"torch {torch.__version__} does not let attention be decided for a device: {error}"
        ) from None
    forget_dispatch(operator)
    try:
        yield
    finally:
        seam.close_library(library)
        forget_dispatch(operator)


def _attend(backend: int, c: Call, scale: float | None) -> torch.Tensor:
    """What `scaled_dot_product_attention` does once the kernel is chosen, step by step as torch does it."""
    mask = _additive(c, -65504.0 if backend == CUDNN else -math.inf)
    if backend == CUDNN:
        kernel = aten._scaled_dot_product_cudnn_attention
        return kernel(c.query, c.key, c.value, mask, c.trains(), c.dropout, c.causal, False, scale=scale)[0]
    if backend == FLASH:
        size = c.query.shape[-1]
        q, k, v = (_padded(t) for t in c.tensors)
        scale = scale if scale is not None else 1.0 / math.sqrt(size)
        out = aten._scaled_dot_product_flash_attention(q, k, v, c.dropout, c.causal, False, scale=scale)[0]
        return out if out.shape[-1] == size else out[..., :size]
    if backend == EFFICIENT:
        if mask is not None:
            mask = _aligned(mask).expand(*c.query.shape[:3], c.key.shape[2])
        kernel = aten._scaled_dot_product_efficient_attention
        return kernel(c.query, c.key, c.value, mask, c.trains(), c.dropout, c.causal, scale=scale)[0]
    whole = aten._scaled_dot_product_attention_math
    return whole(c.query, c.key, c.value, mask, c.dropout, c.causal, None, scale=scale, enable_gqa=c.gqa)[0]


def _additive(c: Call, least: float) -> torch.Tensor | None:
    """A boolean mask as numbers to add."""
    if c.mask is None or c.mask.dtype != torch.bool:
        return c.mask
    return aten.where.ScalarSelf(c.mask, 0.0, aten.scalar_tensor(least, dtype=c.query.dtype, device=c.mask.device))


def _padded(tensor: torch.Tensor) -> torch.Tensor:
    rest = tensor.shape[-1] % 8
    return tensor if rest == 0 else torch.nn.functional.pad(tensor, (0, 8 - rest))


def _aligned(mask: torch.Tensor) -> torch.Tensor:
    if all(stride % 8 == 0 for stride in mask.stride()[:-1]) and mask.stride(-1) == 1:
        return mask
    size = mask.shape[-1]
    return torch.nn.functional.pad(mask, (0, 8 - size % 8))[..., :size]


# ------------------------------------------------------------------------- what the kernels compute, on the CPU


class Attention:
    """The definition, in float32 (or wider), and its derivative: no autograd below the dispatcher."""

    def __init__(self, q: Any, k: Any, v: Any, bias: Any, causal: bool, scale: float | None) -> None:
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        self.groups = q.shape[1] // k.shape[1], q.shape[1] // v.shape[1]
        self.q, self.bias = q.to(wide), bias
        self.k, self.v = (t.to(wide).repeat_interleave(n, 1) for t, n in zip((k, v), self.groups, strict=True))
        self.scale = scale if scale is not None else 1.0 / math.sqrt(q.shape[-1])
        scores = (self.q @ self.k.transpose(-1, -2)) * self.scale
        if bias is not None:
            scores = scores + bias.to(wide)
        if causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
        self.total = torch.logsumexp(scores, -1)
        self.weights = torch.softmax(scores, -1)
        self.out = self.weights @ self.v

    def gradients(self, out: torch.Tensor) -> list[torch.Tensor]:
        """Of query, key, value and bias, for a gradient of the output."""
        out = out.to(self.out.dtype)
        scores = out @ self.v.transpose(-1, -2)
        scores = self.weights * (scores - (out * self.out).sum(-1, keepdim=True))
        key, value = scores.transpose(-1, -2) @ self.q * self.scale, self.weights.transpose(-1, -2) @ out
        found = [
            scores @ self.k * self.scale,
            *(_ungrouped(t, n) for t, n in zip((key, value), self.groups, strict=True)),
        ]
        return found if self.bias is None else [*found, scores.sum_to_size(self.bias.shape)]


def _ungrouped(tensor: torch.Tensor, groups: int) -> torch.Tensor:
    return tensor.unflatten(1, (-1, groups)).sum(2)


def _forward(kernel: Any) -> Callable[..., Any]:
    def run(q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> Any:
        given = _bound(kernel, (q, k, v, *rest), options)
        _no_dropout(given)
        made = Attention(q, k, v, given.get("attn_bias"), given["is_causal"], given["scale"])
        total, shaped = made.total, _shaped(kernel, (q, k, v, *rest), options)
        shaped[0].copy_(made.out)
        if shaped[1].numel():
            # Its rows may be padded to a multiple of what the kernel works on at once.
            shaped[1].zero_()[..., : total.shape[-1]].copy_(total.reshape(*shaped[1].shape[: shaped[1].dim() - 1], -1))
        return tuple(shaped)

    return run


def _backward(kernel: Any) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        given = _bound(kernel, args, options)
        _no_dropout(given)
        bias = given.get("attn_bias")
        bias = bias if isinstance(bias, torch.Tensor) and bias.numel() else None
        made = Attention(given["query"], given["key"], given["value"], bias, given["is_causal"], given["scale"])
        found = made.gradients(next(iter(given.values())))
        shaped = _shaped(kernel, args, options)
        for place, gradient in zip(shaped, found, strict=False):
            if isinstance(place, torch.Tensor) and place.numel():
                place.copy_(gradient)
        return tuple(shaped)

    return run


def _bound(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    arguments = schema_of(kernel).arguments
    names = [a.name for a in arguments]
    defaults = {a.name: a.default_value for a in arguments if a.has_default_value()}
    return (
        dict(zip(names, args, strict=False))
        | {k: v for k, v in defaults.items() if k not in names[: len(args)]}
        | options
    )


def _no_dropout(given: dict[str, Any]) -> None:
    if given["dropout_p"]:
        raise NotInterpretable("dropout inside an attention kernel draws numbers that only the GPU has")


def _shaped(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
    """Outputs of the shapes and strides that the kernel gives, as its own meta function says; values still to come."""
    args, options = pytree.tree_map_only(torch.Tensor, lambda t: _empty_like(t, "meta"), (args, options))
    found = kernel(*args, **options)
    return [_empty_like(value, "cpu").zero_() if isinstance(value, torch.Tensor) else value for value in found]


def _empty_like(tensor: torch.Tensor, device: str) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)


STAND_INS: dict[Any, Callable[..., Any]] = {}
for _name in ("flash", "efficient", "cudnn"):
    _kernel = getattr(aten, f"_scaled_dot_product_{_name}_attention").default
    STAND_INS[_kernel] = _forward(_kernel)
    _kernel = getattr(aten, f"_scaled_dot_product_{_name}_attention_backward").default
    STAND_INS[_kernel] = _backward(_kernel)
