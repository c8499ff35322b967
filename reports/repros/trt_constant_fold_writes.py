"""Torch-TensorRT 2.11 to 2.13: compiling changes the user's buffers.

Constant folding runs what depends on buffers only, writes included: a counter counts once while it is compiled, and is then frozen
into the engine. Needs no GPU."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

from torch_tensorrt.dynamo import CompilationSettings
from torch_tensorrt.dynamo.lowering import get_decompositions, post_lowering


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.calls


module, x = Counter(), torch.ones(3)
graph = torch.export.export(module, (x,)).run_decompositions(get_decompositions()).module()
try:  # since 2.14, `compile` makes mutated buffers inputs before it folds constants
    from torch_tensorrt.dynamo.lowering._buffer_lifting import lift_mutated_buffers

    graph, _ = lift_mutated_buffers(graph)
except ImportError:
    pass
post_lowering(graph, CompilationSettings())
print(f"calls is {module.calls.item()} after lowering and no call at all, it was 0.0")
raise SystemExit("compiling wrote to the user's buffer" if module.calls.item() != 0.0 else 0)
