"""A region inside a region (nested_compile_region): the second use runs the first one's body, whatever the object says that it reads (2.15). And a
region that reads a tensor which the program has just given to an object is not captured."""

import torch

x = torch.arange(3.0)
region = torch.compiler.nested_compile_region


class Layer:
    def __init__(self, given):
        self.given = given


@region
def inner(layer, x):
    return x + layer.given


@region
def outer(layer, x):
    return inner(layer, x) * 2


def used_twice(x, layers):
    return sum(outer(layer, x) for layer in layers)


def rebound(x, layer):
    first = inner(layer, x)
    layer.given = x.cos() * 7
    return first + inner(layer, x)


wrong = []
for program, make in ((used_twice, lambda: [Layer(1), Layer(5)]), (rebound, lambda: Layer(torch.ones(3)))):
    torch.compiler.reset()
    try:
        if not torch.equal(torch.compile(program)(x, make()), program(x, make())):
            wrong.append(f"{program.__name__}: another result")
    except Exception as error:
        wrong.append(f"{program.__name__}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
