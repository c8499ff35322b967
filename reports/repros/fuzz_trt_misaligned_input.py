"""Torch-TensorRT: an input that begins in the middle of its storage: "misaligned address", and the CUDA context is lost.

`x` is contiguous, so that the runtime does not copy it; its address is no multiple of 16 bytes, which the engine's kernels take for
granted. Found by shape fuzzing on an H200 (`matmul.mm_add_bias` with a storage offset of three elements, the third example of the
session) on Torch-TensorRT 2.11.0 and 2.14.0. Needs a GPU. Exits 1 while the defect is there.
"""

import sys

import torch
import torch_tensorrt


class Product(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.randn(40, 35)), torch.nn.Parameter(torch.randn(35))

    def forward(self, x):
        return x @ self.weight + self.bias


if not torch.cuda.is_available():
    sys.exit("needs a GPU")
module = Product().cuda().eval()
base = torch.randn(43, device="cuda")
x = base[3:].view(1, 40)
with torch.no_grad():
    eager = module(x)
    compiled = torch_tensorrt.dynamo.compile(torch.export.export(module, (x,)), inputs=[x], min_block_size=1)
    try:
        out = compiled(x)
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}")
        sys.exit(1)
print("torch_tensorrt", torch_tensorrt.__version__, "right" if torch.allclose(out, eager, atol=1e-2) else "WRONG")
sys.exit(not torch.allclose(out, eager, atol=1e-2))
