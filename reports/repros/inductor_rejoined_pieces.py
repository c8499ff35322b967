"""`pre_grad_fusion_options` that rewrite pieces which are joined again: wrong values, errors, and results that are the caller's own tensor,
with split_cat_pass, unbind_stack_pass, unbind_stack_to_slices_pass, split_cat_to_slices_pass, unbind_cat_to_view_pass and others."""

import torch


def joined(x):
    return torch.cat(torch.split(x, 2, 1), 1)


def stacked(x):
    return torch.stack(torch.unbind(x, 1), 1)


PRE, POST = "pre_grad_fusion_options", "post_grad_fusion_options"
values = {
    "split_cat_to_slices_pass": (
        PRE,
        lambda x: torch.cat([x[:, :1], *torch.split(x, 2, 1)[:2], x[:, :1], torch.split(x, 2, 1)[2]], 1) * 2,
    ),
    "split_stack_to_cats_pass": (PRE, lambda x: torch.stack(torch.split(x, 2, 1), -1) * 2),
    "unbind_stack_to_slices_pass": (PRE, lambda x: torch.stack(torch.unbind(x, 1), 0) * 2),
    "unbind_cat_to_view_pass": (PRE, lambda x: torch.cat(torch.unbind(x, 0)[::-1], 1) * 2),
    "move_reshape_out_of_split_stack_pass": (
        PRE,
        lambda x: torch.stack([p.reshape(4, 16) for p in torch.split(x, 2, 1)], 0) * 2,
    ),
    "normalization_aten_pass": (POST, lambda x: torch.cat(torch.split(x, 4, 1)[::-1], 1) * 2),
}
found = []
for name, (when, call) in values.items():
    torch._dynamo.reset()
    x = torch.randn(4, 6, 8)
    try:
        given = torch.compile(
            call, options={when: {"normalization_pass": {}, name: {}} if when == PRE else {name: {}}}
        )(x)
    except Exception as error:
        found.append(f"{name}: {type(error).__name__}")
        continue
    if not torch.equal(given, call(x)):
        found.append(f"{name}: wrong values")
for name, call in {"merge_getitem_cat_pass": joined, "split_cat_pass": joined, "unbind_stack_pass": stacked}.items():
    torch._dynamo.reset()
    x = torch.randn(4, 6, 8)
    torch.compile(call, options={PRE: {"normalization_pass": {}, name: {}}})(x).zero_()
    if not x.any():
        found.append(f"{name}: the result is the input itself")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
