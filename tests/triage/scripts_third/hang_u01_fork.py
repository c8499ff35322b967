"""No report known: a forked process that calls a compiled function waits for threads that it does not have."""

import os

import torch

torch.set_num_threads(2)
f = torch.compile(lambda x: (x.sin() + 1).cos())
x = torch.randn(20_000)
want = f(x)
pid = os.fork()
if pid == 0:
    os._exit(0 if torch.allclose(f(x), want) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
