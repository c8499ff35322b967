"""With `capture_dynamic_output_shape_ops`: rows that a mask chooses, transposed and made contiguous, are not: the strides stay those of the
transposed matrix. No error."""

import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True


def program(x, mask):
    return x[mask].t().contiguous()


x, mask = torch.arange(24.0).view(6, 4), torch.arange(6) < 4
eager, compiled = program(x, mask), torch.compile(program, fullgraph=True)(x, mask)
if eager.stride() != compiled.stride():
    raise SystemExit(f"torch {torch.__version__}: eager {eager.stride()}, compiled {compiled.stride()}")
