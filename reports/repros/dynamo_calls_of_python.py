"""`f(**first, **second)` with one keyword in both is not refused; args and func of a partial of a partial are those of the outer one
alone; close() of a generator gives what the generator returns, which Python does only from 3.13 on. No error."""

import functools

import torch


def everything(*args, **options):
    return args, options


def keyword_twice(x):
    first, second = {"a": 1}, {"a": 2}
    try:
        return x + 1, everything(**first, **second)
    except TypeError:
        return x + 1, "refused"


def partial(x):
    made = functools.partial(functools.partial(everything, 1), 3)
    return x + 1, (tuple(made.args), made.func is everything)


def closed(x):
    def steps():
        try:
            yield 1
        except GeneratorExit:
            return 5

    begun = steps()
    next(begun)
    return x + 1, begun.close()


found = []
for call in (keyword_twice, partial, closed):
    torch._dynamo.reset()
    _, given = torch.compile(call, backend="eager")(torch.ones(2))
    _, right = call(torch.ones(2))
    if given != right:
        found.append(f"{call.__name__} gives {given!r}, not {right!r}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))
