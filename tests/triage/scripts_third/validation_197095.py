"""pytorch#197095: interpolation of an image without pixels is refused in eager and computed when compiled."""

import sys

import torch
import torch.nn.functional as F


def f(x):
    return F.interpolate(x, size=(2, 2), mode="bilinear")


x = torch.zeros(1, 1, 0, 4)
refused = []
for function in (f, torch.compile(f)):
    try:
        function(x)
        refused.append(False)
    except Exception as error:
        print(type(error).__name__)
        refused.append(True)
sys.exit(refused[0] and not refused[1])
