"""Torch-TensorRT: cumulative_trapezoid of int32 gives other numbers than eager.

Found by shape fuzzing on an H200 (Torch-TensorRT of the torch 2.14.1 stack; a generated graph, shrunk to one line,
wrong in a fresh process as well). Needs a GPU. Exits 1
while the defect is there.
"""

import sys

import torch
import torch_tensorrt


class Graph(torch.nn.Module):
    def forward(self, x):
        return torch.cumulative_trapezoid(x, dim=-1)


if not torch.cuda.is_available():
    sys.exit("needs a GPU")
x = torch.tensor([[3, 6], [-9, 0]], dtype=torch.int32, device="cuda")
eager = Graph()(x)
try:
    out = torch_tensorrt.dynamo.compile(torch.export.export(Graph(), (x,)), inputs=[x], min_block_size=1)(x)
    torch.testing.assert_close(out, eager)
except Exception as error:
    print(f"{type(error).__name__}: {str(error).strip()[:300]}")
    sys.exit(1)
print("torch_tensorrt", torch_tensorrt.__version__, "right")
