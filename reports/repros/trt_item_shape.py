"""`item()` of an input used as a number: 2.14 compiles it, and the engine does not take the shape that it is called with. Needs a GPU."""

import torch
import torch_tensorrt


class Module(torch.nn.Module):
    def forward(self, x, count):
        return x.exp() * count.item() + 1.0


inputs = (torch.randn(14, device="cuda"), torch.tensor(3, device="cuda"))
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Module(), inputs), inputs=list(inputs), min_block_size=1)
try:
    compiled(*inputs)
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {error}") from None
