"""Torch-TensorRT 2.11 cannot convert logaddexp: "__len__() should return >= 0".

Found by shape fuzzing on an H200 (Torch-TensorRT 2.11.0; a generated graph, shrunk to one line,
wrong in a fresh process as well). Needs a GPU. Exits 1
while the defect is there.
"""

import sys

import torch
import torch_tensorrt


class Graph(torch.nn.Module):
    def forward(self, x):
        return torch.logaddexp(x, x)


if not torch.cuda.is_available():
    sys.exit("needs a GPU")
x = torch.ones(2, 2, device="cuda")
eager = Graph()(x)
try:
    out = torch_tensorrt.dynamo.compile(torch.export.export(Graph(), (x,)), inputs=[x], min_block_size=1)(x)
    torch.testing.assert_close(out, eager)
except Exception as error:
    print(f"{type(error).__name__}: {str(error).strip()[:300]}")
    sys.exit(1)
print("torch_tensorrt", torch_tensorrt.__version__, "right")
