"""Torch-TensorRT 2.14 takes a cast from bool to float8 for its engine, and TensorRT-RTX 1.6 builds none: "build_serialized_network returned None".

Needs an engine: a GPU, or `conformance run -b torch_tensorrt -t sm_90 -m upstream.dtype.bool_to_float8`."""

import torch
import torch_tensorrt


class Cast(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.float8_e4m3fn).float()


x = (torch.arange(16) % 2 == 0).cuda()
try:
    torch_tensorrt.dynamo.compile(torch.export.export(Cast(), (x,)), inputs=[x], min_block_size=1)
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {str(error).splitlines()[0]}") from None
