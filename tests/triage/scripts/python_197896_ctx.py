"""pytorch#197896: neighbour: a local context manager counts its entries in a closed-over dict."""

import sys

import torch


def make():
    seen = {"enter": 0, "exit": 0}

    class Scope:
        def __enter__(self):
            seen["enter"] += 1
            return self

        def __exit__(self, *exc):
            seen["exit"] += 1
            return False

    def f(x):
        with Scope():
            y = x + 1
        return y

    return f, seen


f, want = make()
g, got = make()
f(torch.ones(1))
torch.compile(g)(torch.ones(1))
print(want, got)
sys.exit(want != got)
