"""Torch-TensorRT cannot compile `sort` of a tensor with one dim, nor a product of int64 matrices: "Could not get tensor shape".

Found by shape fuzzing for sm_90 (Torch-TensorRT 2.14.0 with TensorRT-RTX; generated graphs, shrunk to one line each). Needs no GPU: it
fails while the network is defined. Exits 1 while the defect is there.
"""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Sort(torch.nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=0).values


class Product(torch.nn.Module):
    def forward(self, x):
        x = x.unsqueeze(0)
        return x @ x.transpose(-1, -2)


device = "cuda" if torch.cuda.is_available() else "cpu"
wrong = ""
for module, x in ((Sort(), torch.ones(2)), (Sort(), torch.ones(2, 3)), (Product(), torch.ones(2, 2)), (Product(), torch.ones(2, 2).long())):
    x = x.to(device)
    try:
        torch_tensorrt.dynamo.compile(torch.export.export(module, (x,)), inputs=[x], min_block_size=1)
        said = "right"
    except Exception as error:
        lines = str(error).strip().splitlines() or ["nothing"]  # without a GPU an engine is built, and then not loaded
        said = f"{type(error).__name__}: {lines[0][:200]}"
        wrong = wrong or (said if "tensor shape" in said else "")
    print(f"{type(module).__name__} of {x.dtype}, shape {tuple(x.shape)}: {said}")
if wrong:
    raise SystemExit(wrong)
