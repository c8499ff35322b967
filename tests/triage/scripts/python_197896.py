"""pytorch#197896: a local class writes to a closed-over list."""

import sys

import torch


def make():
    log = []

    class Recorder:
        def note(self, s):
            log.append(s)

    def f(x):
        r = Recorder()
        r.note(tuple(x.shape))
        return x * 2

    return f, log


f, want = make()
g, got = make()
c = torch.compile(g)
for n in (2, 2):
    f(torch.ones(n))
    c(torch.ones(n))
print("eager log", want, "compiled log", got)
sys.exit(want != got)
