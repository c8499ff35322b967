"""Torch-TensorRT 2.14 cannot compile a module that returns a number, a bool or a string beside a tensor.

After the engines are built, `compile_module` reads `.target` of every output: `'int' object has no attribute 'target'` (with None it is the
same). `dryrun` does not get there, so this needs an engine: a GPU, or
`conformance run -b torch_tensorrt -t sm_90 -m upstream.python.star_unpacking`."""

import torch
import torch_tensorrt


class NumberBeside(torch.nn.Module):
    def forward(self, x):
        return x + 1.0, 3


x = torch.randn(4).cuda()
try:
    torch_tensorrt.dynamo.compile(torch.export.export(NumberBeside(), (x,)), inputs=[x], min_block_size=1)
except AttributeError as error:
    raise SystemExit(f"AttributeError: {error}") from None
