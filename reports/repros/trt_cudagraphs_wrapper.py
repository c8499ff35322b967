"""Torch-TensorRT with cudagraphs, where part of the module stays in PyTorch: a list in place of a tuple, and writes that do not arrive.

The whole-graph wrapper copies inputs into buffers of its own and returns its list of outputs: the caller's tensor is not written, and
what is returned is no longer it. Seen on an H200 with 2.11.0. Needs a GPU."""

import torch
import torch_tensorrt


class Clamp(torch.nn.Module):
    def forward(self, x):
        return x.clamp_(min=-0.25)


x = torch.randn(4, 9).cuda()
program = torch.export.export(Clamp(), (x,))
compiled = torch_tensorrt.dynamo.compile(program, inputs=[x], min_block_size=1)
mine, eagers = x.clone(), x.clone()
Clamp()(eagers)
with torch_tensorrt.runtime.enable_cudagraphs(compiled) as module:
    module(mine)
print("the caller's tensor is written:", torch.equal(mine, eagers))
raise SystemExit("a write does not arrive under cudagraphs" if not torch.equal(mine, eagers) else 0)
