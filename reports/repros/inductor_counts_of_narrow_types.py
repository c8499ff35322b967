"""torch 2.11: places that unique gives of narrow numbers, counts of bytes, sums by int32 places."""

import torch

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


def places(x):
    values, where = x.unique(return_inverse=True)
    return values[where] * 2


small = torch.tensor([3, 1, 3, 2])
table = torch.arange(561.0).view(33, 17).t()
PROGRAMS = {
    "unique of bytes": (places, (small.to(torch.uint8),)),
    "unique of halves": (places, (small.half(),)),
    "bincount of bytes": (lambda x: torch.bincount(x, minlength=12), (small.to(torch.uint8),)),
    "bincount with weights": (lambda x, w: torch.bincount(x, w, 12), (small, torch.arange(4.0))),
    "index_add": (
        lambda t, i, s: t.index_add(0, i, s, alpha=2),
        (table, torch.arange(17, dtype=torch.int32) % 5, torch.ones(17, 33)),
    ),
}
wrong = []
for name, (program, given) in PROGRAMS.items():
    torch.compiler.reset()
    try:
        made, expected = torch.compile(program)(*given), program(*given)
        if made.dtype != expected.dtype or not torch.allclose(made.double(), expected.double()):
            wrong.append(name)
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
