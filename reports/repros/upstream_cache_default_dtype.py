"""A graph that was cached under one default dtype is served under another. Needs torch alone; exits 1 while it is so."""

import os
import subprocess
import sys
import tempfile

CHILD = """
import sys, torch
torch.set_default_dtype(getattr(torch, sys.argv[1]))
f = lambda x: torch.zeros(3) + x
x = torch.ones(3, dtype=torch.float16)
print(f(x).dtype, torch.compile(f)(x).dtype)
"""

with tempfile.TemporaryDirectory() as folder:
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
    for dtype in ("float32", "float64"):
        said = subprocess.run([sys.executable, "-c", CHILD, dtype], env=env, capture_output=True, text=True).stdout.split()
        print(f"default {dtype}: eager {said[0]}, compiled {said[1]}")
sys.exit(said[0] != said[1])
