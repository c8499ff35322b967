"""`as_strided` of a view of something computed reads that tensor's memory in eager, and the view's compiled; neighbours of pytorch#197431."""

import torch

x = torch.arange(16.0).view(4, 4)
CALLS = {
    "of a row": lambda x: torch.as_strided((x * 2)[1], (3, 4), (4, 1)),
    "of every other": lambda x: torch.as_strided(x.sin()[:, ::2], (4, 4), (4, 1)),
    "of a half": lambda x: (x @ x).chunk(2, 1)[1].as_strided((3, 4), (4, 1)),
    "of a transposed": lambda x: (x * 2).t()[1:].as_strided((2, 3), (4, 1)),
    "of the input": lambda x: torch.as_strided(x[:, 1:3], (2, 2), (4, 1)) + 1,
    "of columns": lambda x: torch.as_strided((x * 3)[:, 1:3], (2, 2), (4, 1)) * 2,
}

found = []
for name, call in CALLS.items():
    torch._dynamo.reset()
    try:
        right = torch.allclose(torch.compile(call)(x), call(x))
    except Exception as error:
        right, name = False, f"{name} ({type(error).__name__})"
    found += [] if right else [name]
if found:
    raise SystemExit(f"torch {torch.__version__}: not as in eager: {', '.join(found)}")
