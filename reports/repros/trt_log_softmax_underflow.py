"""Torch-TensorRT 2.14 lowers log_softmax to the logarithm of a softmax: where the softmax underflows, the result is -inf and not the number
that eager gives. Masked scores (-1e4) are such numbers.

Needs no GPU: the graph after its decompositions is run in PyTorch."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

from torch_tensorrt.dynamo.lowering import get_decompositions


class LogSoftmax(torch.nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, -1)


x = torch.tensor([[0.0, 1.0, -1e4]])
lowered = torch.export.export(LogSoftmax(), (x,)).run_decompositions(get_decompositions()).module()
eager, compiled = LogSoftmax()(x), lowered(x)
print("eager", eager, "lowered", compiled)
raise SystemExit(0 if torch.allclose(eager, compiled) else "log_softmax is not what eager computes")
