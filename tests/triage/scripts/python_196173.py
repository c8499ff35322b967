"""pytorch#196173: branches on the identity of two objects, and their state afterwards."""

import sys

import torch


class Node:
    def __init__(self):
        self.n = 0


def f(x, a, b):
    if a is b:
        a.n += 1
    else:
        b.n += 10
    return x + a.n + b.n


c = torch.compile(f)
for same in (True, False, True):
    a = Node()
    b = a if same else Node()
    p = Node()
    q = p if same else Node()
    x = torch.zeros(1)
    want, got = f(x, a, b), c(x, p, q)
    if not (torch.equal(want, got) and (a.n, b.n) == (p.n, q.n)):
        print("DIFF", same, want, got, (a.n, b.n), (p.n, q.n))
        sys.exit(1)
