"""Torch-TensorRT cannot compile log_softmax of a tensor with one dim: "Could not get tensor shape".

Found by shape fuzzing for sm_90 (Torch-TensorRT 2.14.0 with TensorRT-RTX; a generated graph, shrunk to one line). Needs no GPU: it fails
while the network is defined. Exits 1 while the defect is there.
"""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class LogSoftmax(torch.nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, dim=0)


device = "cuda" if torch.cuda.is_available() else "cpu"
wrong = ""
for shape in ((2,), (2, 3)):
    for dtype in (torch.float16, torch.float32):
        x = torch.ones(shape, dtype=dtype, device=device)
        try:
            torch_tensorrt.dynamo.compile(torch.export.export(LogSoftmax(), (x,)), inputs=[x], min_block_size=1)
            said = "right"
        except Exception as error:
            lines = str(error).strip().splitlines() or ["nothing"]  # without a GPU an engine is built, and then not loaded
            said = f"{type(error).__name__}: {lines[0][:200]}"
            wrong = wrong or (said if "tensor shape" in said else "")
        print(f"{dtype}, shape {shape}: {said}")
if wrong:
    raise SystemExit(wrong)
