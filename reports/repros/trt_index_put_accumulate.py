"""Torch-TensorRT leaves `index_put(..., accumulate=True)` of one index to PyTorch: its converter refuses it, so that a module of this op
alone comes back as it was. Right, and not compiled. Needs no GPU."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class IndexPut(torch.nn.Module):
    def forward(self, x, index, values):
        return torch.index_put(x, (index,), values, accumulate=True)


device = "cuda" if torch.cuda.is_available() else "cpu"
x, values = torch.randn(7, 5, device=device), torch.randn(20, 5, device=device)
index = torch.randint(0, 7, (20,), device=device)
program = torch.export.export(IndexPut(), (x, index, values))
compiled = torch_tensorrt.dynamo.compile(program, inputs=[x, index, values], min_block_size=1)
engines = [name for name, _ in compiled.named_children() if "_run_on_acc" in name]
raise SystemExit("no engine: the original module came back" if not engines else 0)
