"""A graph compiled with emulate_precision_casts is never found in the cache by another process. Needs a GPU, and CUDA_HOME with libdevice.

torch 2.14 then uses the CUDA toolkit's libdevice (TRITON_LIBDEVICE_PATH, for the rest of the process) and keeps its path with the saved graph. A new process looks the graph
up before it has set that path, so that the two differ: the entry is refused. Whatever the first process compiles afterwards is refused in the same way.
Exits 1 where the second process finds nothing."""

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import torch
from torch._dynamo.utils import counters

torch.compile(lambda x: (x * 1.1).sum(1), options={"emulate_precision_casts": True})(torch.ones(4, 64, device="DEVICE", dtype=torch.bfloat16))
print(counters["inductor"]["fxgraph_cache_hit"])
"""


def hits(folder: str, device: str) -> int:
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
    done = subprocess.run([sys.executable, "-c", PROGRAM.replace("DEVICE", device)], env=env, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


with tempfile.TemporaryDirectory() as folder:
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    hits(folder, device)
    found = hits(folder, device)
    print(f"hits in a second process: {found}")
    sys.exit(0 if found else 1)
