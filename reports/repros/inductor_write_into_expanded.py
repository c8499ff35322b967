"""index_put, slice_scatter, select_scatter and their like of an expanded tensor write into all the places that share its storage, or lose
what is written. See pytorch#188084, #183986."""

import torch

index = torch.tensor([0, 2])
x = torch.randn(2, 3)
CALLS = {
    "index_put": lambda x: torch.zeros(1, 3).expand(4, 3).index_put((index,), x, accumulate=True),
    "index_add": lambda x: (x[:1] * 2).expand(4, 3).index_add(0, index, x),
    "index_copy": lambda x: (x[:1] * 2).expand(4, 3).index_copy(0, index, x),
    "slice_scatter": lambda x: (x[:1] * 2).expand(4, 3).slice_scatter(x, 0, 1, 3),
    "select_scatter": lambda x: (x[:1] * 2).expand(4, 3).select_scatter(x[1], 0, 1),
    "diagonal_scatter": lambda x: (x[:1] * 2).expand(4, 3).diagonal_scatter(x[1]),
}

found = []
for name, call in CALLS.items():
    torch._dynamo.reset()
    if not torch.allclose(call(x), torch.compile(call)(x)):
        found.append(name)
if found:
    raise SystemExit(f"torch {torch.__version__}: wrong values: " + ", ".join(found))
