"""Writes, views and reads of one storage in every order; what the caller does with the outputs afterwards."""

from __future__ import annotations

from conformance.fuzz.grammar import Choices, Grammar, names
from conformance.fuzz.grammars import custom_ops

TEXT = """
def body(x, y):
    $base
    $view
    $snapshot
    $write
    $again
    $read
    return $out

def f(x, y):
    $region

def inputs():
    $inputs
    return x, y

def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (list, tuple)) else []

def after(out, args):
    $caller
    return out, args
"""
BASES = {
    "input": "a = x",
    "intermediate": "a = x + 1",
    "clone": "a = x.clone()",
    "zeros": "a = torch.zeros_like(x)",
    "second input": "a = y",
    "detached": "a = x.detach()",
    "times one": "a = x * 1",
    "plus zeros": "a = x + torch.zeros_like(x)",
    "reshaped": "a = x.reshape(6, 4).reshape(4, 6)",
    "transposed": "a = x.t().contiguous().t()",
    "padded": "a = F.pad(x, (0, 0))",
    "cat of one": "a = torch.cat([x])",
}
VIEWS = {
    "itself": "v = a",
    "slice": "v = a[1:3]",
    "full slice": "v = a[:]",
    "every other column": "v = a[:, ::2]",
    "row": "v = a[1]",
    "column": "v = a[:, 2]",
    "negative slice": "v = a[-2:]",
    "transposed": "v = a.t()",
    "diagonal": "v = a.diagonal()",
    "flat": "v = a.view(-1)",
    "unfolded": "v = a.view(-1).unfold(0, 4, 2)",
    "unfolded apart": "v = a.unfold(1, 2, 2)",
    "unfolded with gaps": "v = a.unfold(1, 1, 3)",
    "as_strided": "v = a.as_strided((2, 3), (6, 2), 1)",
    "second chunk": "v = a.chunk(2)[1]",
    "split": "v = a.split(2, 1)[2]",
    "unbound": "v = a.unbind(1)[3]",
    "narrow": "v = a.narrow(0, 1, 2)",
    "integers": "v = a.view(torch.int32)",
    "expanded": "v = a[:1].expand(4, 6)",
    "unsqueezed": "v = a.unsqueeze(0)",
    "movedim": "v = a.view(2, 2, 6).movedim(0, 2)",
    "complex": "v = torch.view_as_real(torch.view_as_complex(a.view(4, 3, 2)))",
    "slice of transposed": "v = a.t()[1:4]",
    "row of slice": "v = a[1:][0]",
    "expand_as": "v = a.expand_as(a)",
    "data": "v = a.data",
    "reshaped": "v = a.reshape(3, 8)",
    "flipped": "v = a.flip(0)",
    "squeezed": "v = a.unsqueeze(1).squeeze(1)",
    "ellipsis": "v = a[..., 1:2]",
}
SNAPSHOTS = {
    "none": "",
    "clone": "s = a.clone()",
    "view's clone": "s = v.clone()",
    "slice": "s = a[1:]",
    "times ones": "s = a * torch.ones_like(a)",
    "times one": "s = a * 1",
    "plus zero": "s = a + 0",
    "plus zeros": "s = a + torch.zeros_like(a)",
    "divided by one": "s = a / 1",
    "to same dtype": "s = a.to(a.dtype)",
    "contiguous": "s = a.contiguous()",
    "contiguous view": "s = v.contiguous()",
    "slice_scatter": "s = torch.slice_scatter(a, y[:2], 0, 1, 3)",
    "slice_scatter whole": "s = torch.slice_scatter(a, y)",
    "select_scatter": "s = torch.select_scatter(a, y[0], 0, 2)",
    "diagonal_scatter": "s = torch.diagonal_scatter(a, y[0, :4])",
    "index_put": "s = a.index_put((torch.tensor([0, 2]),), y[:2])",
    "index_add": "s = a.index_add(0, torch.tensor([1, 1]), y[:2])",
    "index_copy": "s = a.index_copy(0, torch.tensor([3]), y[:1])",
    "scatter": "s = a.scatter(0, torch.zeros(1, 6, dtype=torch.int64), y[:1])",
    "copied into": "s = torch.empty_like(a)\ns[:] = a[:]",
    "copied whole": "s = torch.empty_like(a)\ns.copy_(a)",
    "other input": "s = y\ns[:] = a[:]",
    "other input's rows": "s = y\ns[0:2] = a[0:2]\ns[2:4] = a[2:4]",
    "where": "s = torch.where(a > 3, a, -a)",
    "flat": "s = a.reshape(-1)",
    "cat": "s = torch.cat([a])",
    "stack": "s = torch.stack([a, a])[0]",
    "expand": "s = a[0].expand(2, 6)",
    "masked_fill": "s = a.masked_fill(a > 5, 0)",
    "double and back": "s = a.double().float()",
    "permuted twice": "s = a.t().t()",
    "sum": "s = a.sum(0)",
    "pad nothing": "s = F.pad(a, (0, 0))",
    "dropout nothing": "s = F.dropout(a, 0.0)",
    "clamp": "s = a.clamp(min=2)",
    "repeat once": "s = a.repeat(1, 1)",
    "upsample": "s = F.interpolate(a[None], scale_factor=1)[0]",
    "roll": "s = a.roll(1, 0)",
    "list": "s = [a, a + 1]",
}
WRITES = {
    "fill_": "v.fill_(3)",
    "zero_": "v.zero_()",
    "item": "v[...] = 7",
    "add_": "v.add_(1)",
    "mul_": "v.mul_(2)",
    "abs_": "v.abs_()",
    "neg_": "v.neg_()",
    "clamp_": "v.clamp_(max=5)",
    "relu_": "v.sub_(9).relu_()",
    "copy_ of itself": "v.copy_(v.flip(0))",
    "copy_ of y": "a.copy_(y)",
    "rows of y": "a[1:3] = y[1:3]",
    "index put": "a[torch.tensor([0, 3])] = y[:2]",
    "index put twice": "a[torch.tensor([0])] = 5\na[torch.tensor([0, 1])] = y[:2]",
    "index put adds": "a.index_put_((torch.tensor([1, 1]),), y[:2], accumulate=True)",
    "index_add_": "a.index_add_(0, torch.tensor([1, 2]), y[:2])",
    "index_fill_": "a.index_fill_(1, torch.tensor([2]), -1)",
    "scatter_": "a.scatter_(1, torch.ones(4, 1, dtype=torch.int64), 9.0)",
    "scatter_add_": "a.scatter_add_(0, torch.ones(1, 6, dtype=torch.int64), y[:1])",
    "masked_fill_": "a.masked_fill_(a > 4, -1)",
    "masked item": "a[a > 4] = 0",
    "foreach": "torch._foreach_add_([a, y], 1)",
    "foreach mul": "torch._foreach_mul_([v], 2.0)",
    "out": "torch.add(v, 1, out=v)",
    "out of base": "torch.mul(a, 2, out=a)",
    "custom": "bump(v)",
    "custom pair": "swap_into(a, y)",
    "custom flip": "flip_into(v.clone(), v)",
    "augmented": "a += y",
    "augmented view": "v -= 2",
    "slice augmented": "a[:, 1:3] += a[:, 3:5]",
    "diagonal filled": "a.fill_diagonal_(8)",
    "swap rows": "a[0], a[1] = a[1].clone(), a[0].clone()",
    "lerp_": "v.lerp_(torch.ones_like(v), 0.5)",
    "addcmul_": "a.addcmul_(y, y)",
    "set data": "a.data.mul_(3)",
    "sort_": "a.copy_(a.sort(1, descending=True).values)",
    "cumsum_": "a.cumsum_(0)",
    "t_": "a = a.t_().t_()\nv.add_(1)",
    "random": "a.bernoulli_(1.0)",
}
AGAIN = {
    "nothing": "",
    "base zeroed": "a.zero_()",
    "base doubled": "a.mul_(2)",
    "input changed": "x.add_(10)",
    "second input takes it": "y.copy_(a)",
    "view again": "v.sub_(1)",
    "rows exchanged": "a[0:2] = a[2:4]",
    "indexed": "a[torch.tensor([2])] = 1",
    "input zeroed": "x.zero_()",
}
READS = {
    "base": "r = a + 0.5",
    "view": "r = v + 1",
    "sum": "r = a.sum()",
    "input": "r = x * 3",
    "both": "r = a.sum(0) + v.sum()",
    "transposed": "r = a.t() @ a",
    "base itself": "r = a",
    "chunks": "r = a.chunk(2)",
    "rows": "r = a.unbind(0)",
    "view of view": "r = v[..., :1]",
    "matmul": "r = a @ y.t()",
    "softmax": "r = torch.softmax(a, 1)",
}
OUTS = names("r", "r, v", "r, a", "v", "r, x", "[r, y]")
OUTS_WITH = names("r, s", "s", "s, v", "s, x")
REGIONS = {
    "none": "return body(x, y)",
    "twice": "return body(x, y), body(x, y)",
    "no_grad": "with torch.no_grad():\n    return body(x, y)",
    "checkpoint": "return torch.utils.checkpoint.checkpoint(body, x, y, use_reentrant=False)",
    "of copies": "return body(x * 1, y + 1), x",
    "autocast": "with torch.autocast('cpu', dtype=torch.bfloat16):\n    return body(x, y)",
}
CALLERS = {
    "nothing": "",
    "writes outputs": "with torch.no_grad():\n    for t in leaves(out):\n        t.add_(100)",
    "zeroes first": "with torch.no_grad():\n    leaves(out)[0].zero_()",
    "writes input": "with torch.no_grad():\n    args[0].sub_(50)",
    "detached write": "leaves(out)[-1].detach().fill_(77)",
}
GIVEN = {
    "apart": "x, y = torch.arange(24.0).view(4, 6), torch.arange(24.0, 48.0).view(4, 6)",
    "the same": "x = torch.arange(24.0).view(4, 6)\ny = x",
    "one storage": "x = torch.arange(24.0).view(4, 6)\ny = x[:]",
    "overlapping": "base = torch.arange(30.0)\nx, y = base[:24].view(4, 6), base[6:].view(4, 6)",
    "side by side": "base = torch.arange(48.0).view(8, 6)\nx, y = base[:4], base[4:]",
    "interleaved": "base = torch.arange(48.0).view(4, 12)\nx, y = base[:, ::2], base[:, 1::2]",
    "transposed": "x, y = torch.arange(24.0).view(6, 4).t(), torch.arange(24.0, 48.0).view(4, 6)",
    "with offset": "x, y = torch.arange(30.0)[6:].view(4, 6), torch.arange(24.0, 48.0).view(4, 6)",
    "gradient": "x = torch.arange(24.0, requires_grad=True).view(4, 6) * 1\ny = torch.arange(24.0, 48.0).view(4, 6)",
    "gradient of view": "x = (torch.arange(48.0, requires_grad=True) * 1).view(8, 6)[2:6]\n"
    "y = torch.arange(24.0, 48.0).view(4, 6)",
    "reversed strides": "x = torch.arange(24.0).view(6, 4).t()\ny = torch.arange(24.0).view(6, 4).t()",
    "expanded y": "x = torch.arange(24.0).view(4, 6)\ny = torch.arange(6.0).expand(4, 6)",
    "int32 view": "x = torch.arange(24.0).view(4, 6)\ny = x.view(torch.int32)",
    "inner": "x = torch.arange(60.0).view(6, 10)[1:5, 2:8]\ny = torch.arange(24.0, 48.0).view(4, 6)",
}
IDEMPOTENT = {"fill_", "zero_", "item", "abs_"}
OVERLAPPING = {"unfolded", "expanded", "expand_as"}


def allowed(choices: Choices) -> bool:
    """A write to places that overlap has one answer only where it does not matter how often it happens."""
    overlap = choices["view"] in OVERLAPPING or choices["inputs"] in ("overlapping", "expanded y", "one storage")
    through_view = "v" in WRITES[choices["write"]].replace("_ove", "")
    if choices["view"] == "unfolded" and choices["write"] not in IDEMPOTENT and through_view:
        return False
    if overlap and choices["write"] in ("copy_ of itself", "custom pair", "foreach"):
        return False
    if choices["inputs"] in ("overlapping", "one storage", "the same") and "y" in WRITES[choices["write"]]:
        return False
    copied = choices["again"] == "second input takes it" or choices["snapshot"].startswith("other input")
    if choices["inputs"] == "overlapping" and copied:
        return False
    if choices["caller"] == "writes outputs" and choices["view"] in OVERLAPPING:
        return False
    kept = choices["out"] in OUTS_WITH
    return kept == (choices["snapshot"] != "none")


GRAMMAR = Grammar(
    name="writes",
    text=TEXT,
    slots={
        "inputs": GIVEN,
        "base": BASES,
        "view": VIEWS,
        "snapshot": SNAPSHOTS,
        "write": WRITES,
        "again": AGAIN,
        "read": READS,
        "out": OUTS | OUTS_WITH,
        "region": REGIONS,
        "caller": CALLERS,
    },
    rungs=("decompositions", "inductor"),
    cause=("inputs", "base", "view", "snapshot", "write"),
    allowed=allowed,
    helpers=custom_ops.OPS,
)
