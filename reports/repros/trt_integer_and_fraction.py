"""Torch-TensorRT 2.14 computes an integer tensor and a fraction in integers: `x * 0.5` is 0 everywhere, `x + 0.25` is x, and `x / 2` is rounded.

The converter of element-wise ops makes a constant of the number in the dtype of the tensor (`_scalar_wrap_dtype`), so that 0.5 becomes 0 before
dtypes are promoted. The engine's output is then cast to float32, and nothing is said.

Needs an engine that runs: a GPU. Without one, `conformance run -b torch_tensorrt -t sm_90 -m upstream.tensorrt_dtype.integer_times_fraction`
shows the layer's dtype (TRT011)."""

import torch
import torch_tensorrt


class Fractions(torch.nn.Module):
    def forward(self, x):
        return x * 0.5, x + 0.25, x / 2


x = torch.arange(6).cuda()
program = torch_tensorrt.dynamo.compile(torch.export.export(Fractions(), (x,)), inputs=[x], min_block_size=1)
for name, got, want in zip(("x * 0.5", "x + 0.25", "x / 2"), program(x), Fractions()(x), strict=True):
    print(name, got.tolist(), "in eager", want.tolist())
wrong = any(not torch.allclose(got, want) for got, want in zip(program(x), Fractions()(x), strict=True))
raise SystemExit(1 if wrong else 0)
