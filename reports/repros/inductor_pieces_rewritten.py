"""Rewrites that are asked for by name break programs that they match: `split_cat_aten_pass` where pieces are joined twice (wrong shape),
`move_view_after_cat_aten_pass` where views are joined along another dim (IndexError), `einsum_to_pointwise_pass` for int32 (int64 comes out)
and for a letter that occurs twice (wrong values). See pytorch#197080 for `normalization_aten_pass`."""

import torch

config = torch._inductor.config
SPLIT = {"normalization_aten_pass": {}, "split_cat_aten_pass": {}}
VIEWS = {"normalization_aten_pass": {}, "move_view_after_cat_aten_pass": {}}
EINSUM = {"einsum_to_pointwise_pass": {}}


def joined(x):
    return torch.cat(torch.split(x, 2, 1) * 4, 1) * 2


def viewed(x):
    return torch.cat([piece.reshape(2, 2, 2) for piece in torch.split(x, 4, 1)], 2) * 2


def einsum(x, weight, bias):
    return torch.einsum("abc,abcd->abd", x, weight) + bias


def diagonal(x, weight, bias):
    return torch.einsum("abb,abbd->abd", x, weight) + bias


def whole(*shape):
    return torch.randint(0, 9, shape, dtype=torch.int32)


calls = {
    "pieces joined four times": ({}, SPLIT, joined, torch.randn(3, 6)),
    "views joined along the last dim": ({}, VIEWS, viewed, torch.randn(2, 12)),
    "einsum of int32": (EINSUM, {}, einsum, whole(2, 3, 4), whole(2, 3, 4, 5), whole(2, 3, 5)),
    "einsum of diagonals": (EINSUM, {}, diagonal, torch.randn(2, 3, 3), torch.randn(2, 3, 3, 5), torch.randn(2, 3, 5)),
}
found = []
for name, (before, after, call, *inputs) in calls.items():
    torch._dynamo.reset()
    right = call(*inputs)
    with config.patch(pre_grad_fusion_options=before, post_grad_fusion_options=after):
        try:
            made = torch.compile(call)(*inputs)
            same = made.dtype == right.dtype and made.shape == right.shape and torch.allclose(made, right, atol=1e-4)
            found += [] if same else [f"{name}: {made.dtype} {tuple(made.shape)}"]
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
