"""Subclasses of OrderedDict and defaultdict become their base after `|`, copy and fromkeys."""

import collections

import torch


class Ordered(collections.OrderedDict):
    pass


class Filled(collections.defaultdict):
    pass


MADE = {
    "Ordered | dict": lambda: Ordered({1: 1}) | {2: 2},
    "dict | Ordered": lambda: {2: 2} | Ordered({1: 1}),
    "Ordered.copy": lambda: Ordered({1: 1}).copy(),
    "Ordered.fromkeys": lambda: Ordered.fromkeys((1, 2)),
    "Filled | dict": lambda: Filled(int, {1: 1}) | {2: 2},
    "Filled.copy": lambda: Filled(int, {1: 1}).copy(),
    "OrderedDict | dict": lambda: collections.OrderedDict({1: 1}) | {2: 2},
}
x = torch.ones(2)
wrong = []
for name, make in MADE.items():
    torch.compiler.reset()
    try:
        made = torch.compile(lambda x, make=make: (x + 1, type(make()).__name__))(x)[1]
    except Exception as error:
        made = type(error).__name__
    expected = type(make()).__name__
    if made != expected:
        wrong.append(f"{name} is of {made}, not {expected}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
