"""Torch-TensorRT cannot compile the variance over a dim of size 1: "correction term was non-positive". Eager gives NaN, with a warning.

Found by shape fuzzing for sm_90 (Torch-TensorRT 2.14.0 with TensorRT-RTX; a generated graph, shrunk to one line). Needs no GPU: it fails
while the program is decomposed. Exits 1 while the defect is there.
"""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Variance(torch.nn.Module):
    def forward(self, x):
        return x.var(dim=0)


device = "cuda" if torch.cuda.is_available() else "cpu"
wrong = ""
for size in (1, 3):
    x = torch.ones(size, 2, 2, device=device)
    try:
        torch_tensorrt.dynamo.compile(torch.export.export(Variance(), (x,)), inputs=[x], min_block_size=1)
        said = "right"
    except Exception as error:
        lines = str(error).strip().splitlines() or ["nothing"]  # without a GPU an engine is built, and then not loaded
        said = f"{type(error).__name__}: {lines[0][:200]}"
        wrong = wrong or (said if "correction term" in said else "")
    print(f"size {size}: {said}")
if wrong:
    raise SystemExit(wrong)
