"""Torch-TensorRT 2.14.0 does not update a buffer in process, unless the write becomes a KV-cache-update layer.

A counter, a running mean, a moving average: the new value is attached as an output ("copy-back"), hidden from the caller, and never
copied into the buffer. The module's own docstring says so; `compile` does not. Needs no GPU to see that nothing writes."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

from torch_tensorrt.dynamo.lowering import get_decompositions
from torch_tensorrt.dynamo.lowering._buffer_lifting import lift_mutated_buffers


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.calls


x = torch.ones(3)
program = torch.export.export(Counter(), (x,)).run_decompositions(get_decompositions())
graph, lifted = lift_mutated_buffers(program.module())
(_, name, buffer), = lifted
for _ in range(3):
    graph(x, buffer)
print(f"{name} is {buffer.item()} after three calls, eager leaves 3.0; copied back by nobody: {graph.meta['_copyback_mutation_buffers']}")
raise SystemExit("the write to the buffer is lost" if buffer.item() != 3.0 else 0)
