"""A graph with torch.linalg.inv is never kept in the FX graph cache: "Can't cache HigherOrderOperator: with_effects".

Exits 1 while the cache is bypassed."""

import sys

import torch
from torch._dynamo.utils import counters

torch.compile(torch.linalg.inv)(torch.eye(3) * 2)
bypassed = counters["inductor"]["fxgraph_cache_bypass"]
print(f"bypassed: {bypassed}, missed: {counters['inductor']['fxgraph_cache_miss']}")
sys.exit(1 if bypassed else 0)
