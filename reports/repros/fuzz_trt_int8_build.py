"""Torch-TensorRT takes the sum of an int8 tensor into an engine that TensorRT cannot build: "engine build failed".

The number that a comparison is made with becomes an int8 constant, which TensorRT takes for a quantized one: "Quantized constant
(/ne_eq_rhs) is only allowed before DQ". Nothing is left to PyTorch. Found by shape fuzzing for sm_90 (Torch-TensorRT 2.14.0 with
TensorRT-RTX; a generated graph, shrunk to two lines). Needs a GPU, or TensorRT-RTX, which builds without one. Exits 1 while the defect is
there.
"""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Count(torch.nn.Module):
    def forward(self, x):
        return torch.count_nonzero(x.sum(dim=1, dtype=torch.int32).unsqueeze(1), dim=1)


device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.arange(8, dtype=torch.int8, device=device).reshape(2, 2, 2)
try:
    torch_tensorrt.dynamo.compile(torch.export.export(Count(), (x,)), inputs=[x], min_block_size=1)
except Exception as error:
    said = str(error).strip().splitlines()[0]
    if "engine build failed" in said:
        raise SystemExit(f"{type(error).__name__}: {said}") from None
    print("not this defect:", type(error).__name__, said)
else:
    print("torch_tensorrt", torch_tensorrt.__version__, "right")
