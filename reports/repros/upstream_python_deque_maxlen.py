"""A deque of the caller with maxlen: the compiled function does not drop its first element. Needs torch alone;
exits 1 while it is so."""

import collections
import sys

import torch


def push(x, window):
    window.append(x.shape[0])
    return x + window[0]


a, b = collections.deque([7, 8], maxlen=2), collections.deque([7, 8], maxlen=2)
want, got = push(torch.zeros(3), a), torch.compile(push)(torch.zeros(3), b)
print("eager", want.tolist(), list(a), "compiled", got.tolist(), list(b))
sys.exit(not torch.equal(want, got) or a != b)
