"""A number is scattered to as many rows as a mask finds: Inductor guards on their count, which nobody knows while it compiles."""

import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True


def program(x, mask):
    places = torch.arange(2, -1, -1) + torch.nonzero(mask) * 0
    return torch.zeros_like(x).scatter(1, places, 1.0)


x = torch.arange(18.0).view(6, 3)
compiled = torch.compile(program)
for count in (3, 6, 0, 1):
    mask = torch.arange(6) < count
    try:
        made = compiled(x, mask)
    except Exception as error:
        raise SystemExit(
            f"torch {torch.__version__}: {count} rows: {type(error).__name__}: {str(error)[:120]}"
        ) from None
    if not torch.equal(made, program(x, mask)):
        raise SystemExit(f"torch {torch.__version__}: {count} rows: {made.tolist()}")
