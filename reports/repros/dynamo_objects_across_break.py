"""Objects that are alive across a graph break come back as others: a deque loses its maxlen, nullcontext its value, views of a dict and
iterators of a list no longer follow them, and an exception of a local class is looked up in the module. No error, except for the last."""

import collections
import contextlib

import torch


@torch.compiler.disable
def cut():
    pass


def local_class():
    class Local(Exception):
        pass

    return Local


LOCAL = [local_class()]


def deque(x):
    last = collections.deque([1, 2], maxlen=2)
    cut()
    last.append(3)
    return x + 1, list(last)


def nullcontext(x):
    nothing = contextlib.nullcontext(3)
    cut()
    with nothing as value:
        return x + 1, value


def nullcontext_around(x):
    with contextlib.nullcontext([1]) as value:
        cut()
        value.append(2)
    return x + 1, value


def keys(x):
    sizes = {"a": 1}
    names = sizes.keys()
    cut()
    sizes["b"] = 2
    return x + 1, list(names)


def iterator(x):
    numbers = [1, 2, 3]
    rest = iter(numbers)
    next(rest)
    cut()
    numbers.append(4)
    return x + 1, list(rest)


def backwards(x):
    rest = reversed([1, 2, 3])
    next(rest)
    cut()
    return x + 1, list(rest)


def exception(x):
    error = LOCAL[0](3)
    cut()
    return x + 1, error.args


def no_grad_of_builtin(x):
    without = torch.no_grad()
    cut()
    return without(torch.sin)(x), 1


found = []
for call in (deque, nullcontext, nullcontext_around, keys, iterator, backwards, exception, no_grad_of_builtin):
    torch._dynamo.reset()
    expected = call(torch.ones(2))[1]
    try:
        got = torch.compile(call, backend="eager")(torch.ones(2))[1]
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if got != expected:
        found.append(f"{call.__name__}: {got}, eager gives {expected}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
