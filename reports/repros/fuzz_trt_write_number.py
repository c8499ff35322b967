"""Torch-TensorRT cannot compile the write of a number into a part of a tensor, `x[..., :1] = 1`: "cannot broadcast a
non-scalar to a scalar array".

Found by `conformance fuzz -b torch_tensorrt -t sm_90 -m programs` (2.14.0 with TensorRT-RTX, grammar `converters`). Needs no GPU: it fails
while the network is defined. Exits 1 while the defect is there.
"""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


def written(x, y):
    x = x.clone()
    x[..., :1] = 1
    return x + y


PROGRAMS = {
    "write of a number, operand without dims": (written, [(2, 4), ()], "cannot broadcast"),
    "write of a number": (written, [(2, 4), (2, 4)], "cannot broadcast"),
}


class Module(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *inputs):
        return self.fn(*inputs)


device = "cuda" if torch.cuda.is_available() else "cpu"
wrong = ""
for name, (fn, shapes, words) in PROGRAMS.items():
    inputs = tuple(torch.ones(shape, device=device) for shape in shapes)
    fn(*inputs)  # eager takes it
    try:
        torch_tensorrt.dynamo.compile(torch.export.export(Module(fn), inputs), inputs=list(inputs), min_block_size=1)
        said = "right"
    except Exception as error:
        lines = str(error).strip().splitlines() or ["nothing"]  # without a GPU an engine is built, and then not loaded
        said = f"{type(error).__name__}: {lines[0][:200]}"
        wrong = wrong or (said if words in said else "")
    print(f"{name}: {said}")
if wrong:
    raise SystemExit(wrong)
