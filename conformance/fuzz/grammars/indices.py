"""Reductions that give indices, sorting, gathering and pooling over permuted and computed inputs. All values differ, so
that there is one right index."""

from __future__ import annotations

from conformance.fuzz.grammar import Choices, Grammar, names

TEXT = """
def body(a, b):
    $source
    $middle
    r = $op
    $follow
    return r

def f(a, b):
    $region

def inputs():
    order = torch.tensor([$order])
    a = (order * 7 % 64).float().view(8, 8)
    b = torch.arange(64.0).view(8, 8) * $scale
    return a, b
"""
SOURCES = {
    "input": "x = a",
    "transposed": "x = a.t()",
    "transposed sum": "x = a.t() + b",
    "sum with transposed": "x = a + b.t()",
    "times transposed": "x = a.t() * 2 - b",
    "permuted": "x = a.view(2, 4, 8).permute(2, 0, 1).reshape(8, 8)",
    "sliced": "x = torch.cat([a, b + 100], 1)[:, ::2]",
    "cat": "x = torch.cat([a.t()[:4], b[:4] + 100])",
    "matmul": "x = a @ torch.eye(8)",
    "where": "x = torch.where(a > 30, a.t(), a + 64)",
    "gathered": "x = a[torch.tensor([3, 1, 4, 0, 5, 7, 2, 6])]",
    "flipped": "x = a.flip(1) + b.t()",
    "row added": "x = a + b[0]",
    "pooled": "x = F.avg_pool1d(a.t()[None], 1)[0]",
    "adaptive pooled": "x = F.adaptive_avg_pool1d(a.t(), 8)",
    "padded": "x = F.pad(a.t(), (0, 0, 1, 1))[1:9]",
    "expanded": "x = a[0].expand(8, 8) + a.t() * 64",
    "as_strided": "x = a.as_strided((8, 8), (1, 8)) + b",
    "unfolded": "x = a.view(-1).unfold(0, 8, 8)",
    "conv": "x = F.conv2d(a[None, None], torch.ones(1, 1, 1, 1))[0, 0]",
    "double": "x = a.t().double() + b",
    "ints": "x = (a.t() + b).long()",
    "bf16": "x = a.t().bfloat16()",
    "3-d": "x = (a.view(2, 4, 8).transpose(0, 2) + b.view(8, 4, 2)).reshape(8, 8)",
}
OPS = names(
    "x.max(1).indices",
    "x.max(0).indices",
    "x.min(1).indices",
    "x.min(0)",
    "x.argmax()",
    "x.argmin()",
    "x.argmax(1)",
    "x.argmin(0)",
    "x.argmax(1, keepdim=True)",
    "x.cummax(1).indices",
    "x.cummin(0).indices",
    "x.topk(3, 0)",
    "x.topk(2, 1, largest=False).indices",
    "x.sort(0).indices",
    "x.sort(1, descending=True)",
    "x.argsort(0)",
    "x.kthvalue(3, 0)",
    "x.median(1)",
    "x.median()",
    "x.nanmedian(0).indices",
    "x.unique(return_inverse=True)",
    "x.nonzero()[:5]",
    "x.gather(1, x.argsort(1))",
    "x.gather(0, x.long() % 8)",
    "torch.take_along_dim(x, x.argmax(1, keepdim=True), 1)",
    "x.index_select(1, x[0].argsort())",
    "x.index_select(0, torch.tensor([2, 0]))",
    "x[x[:, 0].argsort()]",
    "x[:, torch.tensor([1, 3])]",
    "x[torch.tensor([0, 2]), torch.tensor([1, 3])]",
    "x[1:, torch.tensor([0])]",
    "x.take(torch.tensor([0, 9, 63]))",
    "x.put(torch.tensor([0, 9]), x.flatten()[:2])",
    "x.index_add(0, torch.tensor([1, 1, 3]), x[:3])",
    "x.index_copy(1, torch.tensor([2]), x[:, :1])",
    "x.index_fill(1, torch.tensor([2]), 5)",
    "x.index_put((torch.tensor([1, 2]),), x[3:5])",
    "x.index_put((torch.tensor([1, 1]),), x[3:5], accumulate=True)",
    "x.scatter_add(0, torch.zeros(2, 8, dtype=torch.int64), x[:2])",
    "x.scatter_reduce(0, torch.zeros(2, 8, dtype=torch.int64), x[:2], 'amax')",
    "x.scatter_reduce(1, torch.ones(8, 2, dtype=torch.int64), x[:, :2], 'amin', include_self=False)",
    "x.masked_select(x > 40)",
    "x.masked_scatter(x > 40, x.flip(0))",
    "torch.searchsorted(x.sort(1).values, x[:, :2].contiguous())",
    "torch.searchsorted(x[0].sort().values[1:], x[0])",
    "torch.bucketize(x, x[0].sort().values[1:])",
    "torch.bucketize(x, x[0].sort().values, right=True)",
    "F.max_pool1d(x[None].float(), 2, return_indices=True)",
    "F.max_pool2d(x[None].float(), 2, return_indices=True)",
    "F.max_pool2d(x[None].float(), 3, 1, 1, return_indices=True)",
    "F.max_pool2d(x[None].float(), 2, ceil_mode=True, stride=3)",
    "F.adaptive_max_pool2d(x[None].float(), 3, return_indices=True)",
    "F.adaptive_max_pool1d(x.float(), 3, return_indices=True)",
    "F.adaptive_avg_pool2d(x[None].float(), (3, 5))",
    "F.avg_pool2d(x[None].float(), 3, 2, 1, count_include_pad=False)",
    "F.max_unpool1d(*F.max_pool1d(x[None].float(), 2, return_indices=True), 2)",
    "F.interpolate(x[None, None].float(), size=(5, 11), mode='bilinear')",
    "F.interpolate(x[None, None].float(), scale_factor=1.5, mode='nearest')",
    "F.interpolate(x[None, None].float(), size=(3, 3), mode='bicubic', align_corners=True)",
    "F.interpolate(x[None].float(), size=5, mode='nearest-exact')",
    "F.grid_sample(x[None, None].float(), torch.zeros(1, 2, 2, 2))",
    "F.embedding(x.long() % 8, x.float())",
    "F.embedding_bag(x.long() % 8, x.float(), mode='max')",
    "F.unfold(x[None, None].float(), 3, stride=2)",
    "F.pad(x[None].float(), (2, 1), mode='circular')",
    "F.pad(x[None, None].float(), (1, 1, 2, 0), mode='replicate')",
    "F.pixel_unshuffle(x[None, None], 2)",
    "F.pixel_shuffle(x.view(1, 4, 4, 4), 2)",
    "torch.roll(x, 3, 1).argmax(1)",
    "torch.triu_indices(4, 5)",
    "torch.var_mean(x.float(), 1)",
    "torch.histc(x.float(), 8)",
    "torch.rot90(x, 1, (0, 1)).argmax(0)",
    "torch.aminmax(x, dim=1)",
    "torch.unravel_index(x.argmax(), (8, 8))",
    "torch.combinations(x[0], 2)[:4]",
    "torch.tensor_split(x, 3, 1)[1]",
    "torch.repeat_interleave(x, torch.tensor([1, 2, 0, 1, 1, 1, 1, 1]), 0)",
    "torch.block_diag(x[:2], x[2:4])",
    "torch.renorm(x.float(), 2, 1, 10)",
)
FOLLOWS = {
    "nothing": "",
    "and the input": "r = (r, x)",
    "and a sum": "r = (r, x.sum(1))",
    "plus one": "r = tuple(t + 1 for t in r) if isinstance(r, tuple) else r + 1",
    "gathered again": "r = (r, x[0:1] + 1, x.t().contiguous())",
}
REGIONS = {
    "none": "return body(a, b)",
    "no_grad": "with torch.no_grad():\n    return body(a, b)",
    "of copies": "return body(a.clone(), b + 0)",
    "transposed inputs": "return body(a.t(), b.t())",
    "checkpoint": "return torch.utils.checkpoint.checkpoint(body, a, b, use_reentrant=False)",
    "twice": "return body(a, b), body(a + 64, b)",
}
MIDDLES = {
    "nothing": "",
    "relu": "x = x.relu() + x * 2",
    "realized": "x = x.clone()",
    "softmaxed": "x = x.float().softmax(1)",
    "written": "x = x + 0\nx[:, 1] = 200",
    "masked": "m = torch.zeros(8, 8)\nm[torch.tensor([1, 2])] = 1\nx = x + m",
    "masked, softmaxed": "m = torch.zeros(8)\nm[torch.tensor([1])] = -1\nx = (x + m).float().softmax(-1)",
}
ORDERS = {
    "rising": "*range(64)",
    "falling": "*range(64)[::-1]",
    "mixed": "*(i * 37 % 64 for i in range(64))",
}


INDEXING = ("arg", "indices", "sort", "topk", "median", "kth", "max(", "min(", "unique")
COARSE = {"softmaxed", "written", "masked", "masked, softmaxed"}


def distinct(choices: Choices) -> bool:
    """Indices are specified only where no two elements are equal."""
    equal = choices["middle"] in COARSE or choices["source"] == "bf16"
    equal |= choices["scale"] == "0" and choices["source"] in ("cat", "sliced")
    return not equal or not any(word in choices["op"] for word in INDEXING)


GRAMMAR = Grammar(
    name="indices",
    text=TEXT,
    slots={
        "source": SOURCES,
        "middle": MIDDLES,
        "op": OPS,
        "follow": FOLLOWS,
        "region": REGIONS,
        "order": ORDERS,
        "scale": names("64", "0.01", "0"),
    },
    rungs=("decompositions", "inductor"),
    cause=("source", "middle", "op"),
    allowed=distinct,
)
