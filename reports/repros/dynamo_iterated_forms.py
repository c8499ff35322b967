"""itertools.count with a negative step or a fraction, combinations of fewer than none, keys of dicts as sets, a defaultdict whose factory is
replaced: other values, or errors that a program cannot catch."""

import collections
import itertools

import torch


def counted(x):
    down, halves = itertools.count(3, -2), itertools.count(start=1, step=0.5)
    return x + 1, [next(down) for _ in range(3)], [next(halves) for _ in range(3)]


def too_few(x):
    try:
        itertools.combinations([1], -1)
    except ValueError:
        return x + 1, "refused"
    return x + 1, "given"


def keys_as_sets(x):
    first, second = {"a": 1, "b": 2}, {"b": 2, "c": 3}
    return x + 1, sorted(first.items() & second.items()), sorted(first.items() ^ second.items()), first.keys().isdisjoint(["q"])


def keys_in_turn(x):
    return x + 1, dict.fromkeys("ab", 0) | dict.fromkeys(["c", "a"]), list(dict.fromkeys(iter("cab")))


def filled_on_demand(x):
    given = collections.defaultdict(list, a=[1])
    given["b"].append(2)
    given.default_factory = int
    given["d"] += 5
    given.default_factory = None
    try:
        given["e"]
    except KeyError as error:
        return x + 1, dict(given), error.args


wrong = []
for program in (counted, too_few, keys_as_sets, keys_in_turn, filled_on_demand):
    torch._dynamo.reset()
    try:
        told = torch.compile(program, backend="eager")(torch.ones(2))[1:]
    except Exception as error:
        told = type(error).__name__
    if told != program(torch.ones(2))[1:]:
        wrong.append(f"{program.__name__}: {told}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(wrong))
