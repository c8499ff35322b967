"""pytorch#169253: neighbour: a dict and a list of a plain class are changed."""

import sys

import torch


class Stats:
    counts = {}
    total = [0]


def f(x):
    Stats.counts["calls"] = Stats.counts.get("calls", 0) + 1
    Stats.total[0] += x.shape[0]
    return x * 2


f(torch.ones(3)), f(torch.ones(3))
want = (dict(Stats.counts), list(Stats.total))
Stats.counts.clear()
Stats.total[0] = 0
c = torch.compile(f)
c(torch.ones(3)), c(torch.ones(3))
got = (dict(Stats.counts), list(Stats.total))
print(want, got)
sys.exit(want != got)
