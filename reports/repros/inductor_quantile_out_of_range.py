"""quantile and nanquantile of a fraction outside of 0 to 1: eager refuses, compiled code computes something."""

import torch

x = torch.tensor([[3.0, 1.0], [5.0, 4.0]])
wrong = []
for function in (torch.quantile, torch.nanquantile):
    for fraction in (-0.1, 2.0):
        torch.compiler.reset()
        q = torch.tensor(fraction)
        try:
            function(x, q, dim=1)
            raise AssertionError("eager computes it, too")
        except RuntimeError:
            pass
        try:
            made = torch.compile(lambda x, q, function=function: function(x, q, dim=1))(x, q)
        except RuntimeError:
            continue
        wrong.append(f"{function.__name__} of {fraction} is {made.tolist()}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
