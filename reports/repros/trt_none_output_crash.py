"""Torch-TensorRT 2.11 to 2.14 cannot compile a module that returns None beside a tensor.

After the engines are built, `compile_module` reads `.target` of every output: `'NoneType' object has no attribute 'target'`.
`dryrun` does not get there, so this needs an engine: a GPU, or `conformance run -b torch_tensorrt -t sm_90 -m edge.nested`."""

import torch
import torch_tensorrt


class NoneBeside(torch.nn.Module):
    def forward(self, x):
        return x + 1.0, None


x = torch.randn(4).cuda()
try:
    torch_tensorrt.dynamo.compile(torch.export.export(NoneBeside(), (x,)), inputs=[x], min_block_size=1)
except AttributeError as error:
    raise SystemExit(f"AttributeError: {error}") from None
