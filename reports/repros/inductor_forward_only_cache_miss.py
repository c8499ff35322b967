"""A model that is called with gradients enabled and never differentiated is not kept in AOTAutograd's cache: each compile misses it."""

import sys
import tempfile

import torch
from torch._dynamo.utils import counters

layer = torch.nn.Linear(3, 3)


def f(x):
    return layer(x).sin()


with tempfile.TemporaryDirectory() as folder, torch._inductor.utils.fresh_cache(dir=folder):
    for _ in range(2):
        torch._dynamo.reset()
        counters.clear()
        torch.compile(f)(torch.randn(2, 3))
misses = counters["aot_autograd"]["autograd_cache_miss"]
print("misses of the second compile:", misses, "hits:", counters["aot_autograd"]["autograd_cache_hit"])
sys.exit(misses != 0)
