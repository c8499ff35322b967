"""Torch-TensorRT 2.14.0 returns a tuple where the module returns a tensor, if the module writes to a buffer.

`lift_mutated_buffers` rebuilds the graph with the plain `CodeGen`, and the nesting of the outputs is forgotten; nothing puts it back.
Needs no GPU."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

from torch_tensorrt.dynamo.lowering import get_decompositions
from torch_tensorrt.dynamo.lowering._buffer_lifting import lift_mutated_buffers


class BufferCache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 2, 12, 8))

    def forward(self, steps):
        self.cache[:, :, 2:5] = steps
        return self.cache.sum(dim=2)


steps = torch.randn(1, 2, 3, 8)
program = torch.export.export(BufferCache(), (steps,)).run_decompositions(get_decompositions())
graph, lifted = lift_mutated_buffers(program.module())
result = graph(steps, *(buffer for _, _, buffer in lifted))
print(f"eager returns a {type(BufferCache()(steps)).__name__}, the lifted graph a {type(result).__name__}")
raise SystemExit("a tuple in place of a tensor" if isinstance(result, tuple) else 0)
