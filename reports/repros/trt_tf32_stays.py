"""Torch-TensorRT-RTX computes float32 matmuls and convolutions in TF32 although `disable_tf32=True`: errors of 1e-3 where eager has 1e-7.

Seen on an H200 with 2.11.0 and TensorRT-RTX 1.4. Needs a GPU."""

import torch
import torch_tensorrt

torch.backends.cuda.matmul.allow_tf32 = False
module, x = torch.nn.Linear(64, 64).cuda().eval(), torch.randn(32, 64).cuda()
program = torch.export.export(module, (x,))
compiled = torch_tensorrt.dynamo.compile(program, inputs=[x], min_block_size=1, disable_tf32=True)
with torch.no_grad():
    exact = torch.nn.functional.linear(x.double(), module.weight.double(), module.bias.double())
    errors = [(y.double() - exact).abs().max().item() for y in (compiled(x), module(x))]
print(f"largest error {errors[0]:.3g}, eager's {errors[1]:.3g}")
raise SystemExit("TF32 is used" if errors[0] > 30 * errors[1] else 0)
