"""1.0 // 0.1 is 9 in eager and 10 compiled: the quotient is rounded before it is floored. Neighbours of pytorch#197895: in place, with a rest,
in gradients, as the number of a bin."""

import torch

x, y = torch.tensor([1.0, 0.5, 6.0]), torch.tensor([0.1, 0.1, 0.2])
CALLS = {
    "//": lambda a, b: a // b,
    "in place": lambda a, b: a.clone().floor_divide_(b),
    "rest": lambda a, b: a - (a // b) * b,
    "bins": lambda a, b: torch.bincount((a // b).long(), minlength=40),
}
wrong = [name for name, call in CALLS.items() if not torch.allclose(call(x, y), torch.compile(call)(x, y), atol=0.05)]
if wrong:
    raise SystemExit(f"torch {torch.__version__}: eager and compiled differ in {', '.join(wrong)}")
