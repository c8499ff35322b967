"""torch.combinations with a size that changes: not captured (2.11)."""

import torch

for again in (False, True):
    torch.compiler.reset()
    program = lambda x, again=again: torch.combinations(x * 2, r=2, with_replacement=again)  # noqa: E731
    compiled = torch.compile(program, dynamic=True)
    try:
        same = all(torch.equal(compiled(torch.arange(float(n))), program(torch.arange(float(n)))) for n in (3, 5, 6))
    except Exception as error:
        raise SystemExit(f"torch {torch.__version__}: {type(error).__name__}") from None
    if not same:
        raise SystemExit(f"torch {torch.__version__}: other pairs")
