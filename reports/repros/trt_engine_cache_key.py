"""Torch-TensorRT's engine cache serves one program the engine of another: its key does not see the arguments of an op.

`BaseEngineCache.get_hash` writes down `op_target` for every node: `softmax(x, 0)` and `softmax(x, 1)` of a square x, or `a - b` and
`b - a`, have the same key, and refitting weights on the hit does not tell them apart. The keys need no GPU; with one, the second
program answers with the first one's softmax."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

import torch_tensorrt
from torch_tensorrt.dynamo import CompilationSettings
from torch_tensorrt.dynamo._engine_cache import BaseEngineCache


class Softmax(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.softmax(x, self.dim)


x = torch.randn(8, 8)
specs, settings = [torch_tensorrt.Input(shape=(8, 8), dtype=torch.float32)], CompilationSettings(immutable_weights=False)
keys = {BaseEngineCache.get_hash(torch.export.export(Softmax(dim), (x,)).module(), specs, settings) for dim in (0, 1)}
print(f"softmax over dim 0 and over dim 1: {len(keys)} key(s)")
wrong = len(keys) == 1
if torch.cuda.is_available():
    import tempfile

    x = x.cuda()
    cached = {"cache_built_engines": True, "reuse_cached_engines": True, "immutable_weights": False, "min_block_size": 1}
    with tempfile.TemporaryDirectory() as folder:
        for dim in (0, 1):
            program = torch.export.export(Softmax(dim), (x,))
            compiled = torch_tensorrt.dynamo.compile(program, inputs=[x], engine_cache_dir=folder, **cached)
            error = (compiled(x) - torch.softmax(x, dim)).abs().max().item()
            print(f"dim {dim}: error {error:.3g}")
    wrong = error > 1e-3
raise SystemExit("two programs, one key" if wrong else 0)
