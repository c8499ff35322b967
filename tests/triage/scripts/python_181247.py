"""pytorch#181247: fullgraph=True with compilation disabled by the environment raises."""

import os
import subprocess
import sys

code = """
import torch
@torch.compile(fullgraph=True)
def f(x):
    return x + 1
print(f(torch.ones(1)).item())
"""
r = subprocess.run(
    [sys.executable, "-c", code], env={**os.environ, "TORCH_COMPILE_DISABLE": "1"}, capture_output=True, text=True
)
print(r.stdout, r.stderr[-300:])
sys.exit(r.returncode != 0)
