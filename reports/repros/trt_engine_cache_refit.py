"""Torch-TensorRT 2.11: a module that comes from the engine cache computes something else.

The cached plan has no weights, and the refit on a hit does not set every constant: `x.mean(0) + 1` loses its 1. Seen on an H200 with
2.11.0 and TensorRT-RTX 1.4. Needs a GPU."""

import tempfile

import torch
import torch_tensorrt


class Mean(torch.nn.Module):
    def forward(self, x):
        return x.mean(dim=0) + 1.0


x = torch.randn(16, 29).cuda()
cached = {"cache_built_engines": True, "reuse_cached_engines": True, "immutable_weights": False, "min_block_size": 1}
with tempfile.TemporaryDirectory() as folder:
    for attempt in ("built", "from the cache"):
        program = torch.export.export(Mean(), (x,))
        compiled = torch_tensorrt.dynamo.compile(program, inputs=[x], engine_cache_dir=folder, **cached)
        error = (compiled(x) - Mean()(x)).abs().max().item()
        print(f"{attempt}: error {error:.3g}")
raise SystemExit("the engine from the cache is wrong" if error > 1e-2 else 0)
