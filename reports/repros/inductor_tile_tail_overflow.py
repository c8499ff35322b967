"""The last tile of a 2D-tiled reduction on the CPU is stored at full width: it writes past the end of the result (pytorch/pytorch#196681).

The process is ended by SIGABRT, or the result is wrong. It is no micrograph: what dies, and when, depends on the heap."""

import subprocess
import sys

PROGRAM = """
import torch
import torch.nn.functional as F

def f(x):
    y = (x * 0.5) * (torch.erf(x * 0.7071067811865476) + 1)
    right = F.pad(y.permute(3, 2, 1, 0), (0, 0, 0, 58), value=0.5)
    left = F.pad(y, (0, 0, 0, 0, 0, 58), value=0.5)
    return torch.matmul(left, right)

torch.manual_seed(0)
x = torch.randn(1, 8, 66, 66).contiguous(memory_format=torch.channels_last)
want, got = f(x), torch.compile(f)(x)
assert torch.allclose(got, want, rtol=1e-3, atol=1e-3)
"""
done = subprocess.run([sys.executable, "-c", PROGRAM], stderr=subprocess.DEVNULL)
raise SystemExit(f"the program ended with {done.returncode}" if done.returncode else 0)
