"""Torch-TensorRT drops a plain write to an input: `x.add_(1)` never reaches the caller.

The lowering pass `remove_num_users_is_0_nodes` erases every node without users, and the `copy_` by which an exported program
writes to its input has none. 2.11 to 2.13 lose every input mutation; 2.14 keeps those that become a KV-cache-update layer.
Needs no GPU: the lowered graph is enough to see it."""

import torch

if not torch.cuda.is_available():  # torch_tensorrt asks for a device when it is imported
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

from torch_tensorrt.dynamo import CompilationSettings
from torch_tensorrt.dynamo.lowering import get_decompositions, post_lowering


class AddInput(torch.nn.Module):
    def forward(self, x):
        x.add_(1.0)
        return x * 2.0


program = torch.export.export(AddInput(), (torch.zeros(4),)).run_decompositions(get_decompositions())
before, after = program.module(), post_lowering(program.module(), CompilationSettings())
for name, graph in (("decomposed", before), ("lowered", after)):
    x = torch.zeros(4)
    graph(x)
    print(f"{name}: x is {x.tolist()} after the call, eager leaves {[1.0] * 4}")
x = torch.zeros(4)
after(x)
raise SystemExit("the write is lost in lowering" if not torch.equal(x, torch.ones(4)) else 0)
