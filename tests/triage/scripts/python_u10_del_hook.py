"""No report known: __del__ of a local object runs at `del`."""

import sys

import torch


def make():
    log = []

    class Resource:
        def __del__(self):
            log.append("closed")

    def f(x):
        r = Resource()
        y = x + 1
        del r
        return y, list(log)

    return f


want, got = make()(torch.zeros(1))[1], torch.compile(make())(torch.zeros(1))[1]
print(want, got)
sys.exit(want != got)
