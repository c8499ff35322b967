"""pytorch#183610: the remainder of a division by zero kills the process; eager raises."""

import torch

x, y = torch.tensor([7, 8, 9]), torch.tensor([2, 0, 3])


def f(x, y):
    return x % y


for function in (f, torch.compile(f)):
    try:
        function(x, y)
    except RuntimeError as error:
        print("refused:", error)
    else:
        raise SystemExit("not refused")
