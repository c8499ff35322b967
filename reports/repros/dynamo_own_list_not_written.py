"""`+=` and `*=` of a list of the program's own class, and `|=` of such a dict, are lost, or give another object. Exits 1 while they do."""

import sys

import torch


class List(list):
    pass


class Dict(dict):
    pass


def plus(x, a):
    a += [1]
    return x + 1


def times(x, a):
    a *= 2
    return x + 1


def either(x, a):
    b = a
    a |= {"w": 1}
    return x + 1, a is b


lost = []
for program, made in ((plus, lambda: List([3])), (times, lambda: List([3])), (either, lambda: Dict(v=1))):
    torch._dynamo.reset()
    said = []
    for function in (program, torch.compile(program)):
        a = made()
        given = function(torch.ones(2), a)
        said.append((list(a), given[1:] if isinstance(given, tuple) else ()))
    print(f"{program.__name__}: eager {said[0]}, compiled {said[1]}")
    lost += [] if said[0] == said[1] else [program.__name__]
sys.exit(1 if lost else 0)
