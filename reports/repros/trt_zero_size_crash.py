"""Torch-TensorRT hands a graph of tensors without elements to the builder, which builds nothing: the compile fails.

Needs a GPU, or `conformance run -b torch_tensorrt -t sm_90 -m edge.zero_size`."""

import torch
import torch_tensorrt


class Empty(torch.nn.Module):
    def forward(self, x):
        return (x * 2.0).sum(dim=0)


x = torch.randn(0, 5).cuda()
try:
    torch_tensorrt.dynamo.compile(torch.export.export(Empty(), (x,)), inputs=[x], min_block_size=1)
except (AssertionError, RuntimeError, ValueError) as error:
    raise SystemExit(f"{type(error).__name__}: {error}") from None
