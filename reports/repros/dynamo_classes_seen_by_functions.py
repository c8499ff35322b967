"""Functions of equal code see another class each in their scope: what that class's own methods see or have as defaults is not guarded."""

import torch

x = torch.arange(3.0)


def by_scope(number):
    class Held:
        def __init__(self):
            self.value = number

    return lambda x: x + Held().value


def by_default(number):
    class Held:
        def __init__(self, value=number):
            self.value = value

    return lambda x: x + Held().value


def by_method(number):
    class Held:
        def value(self):
            return number

    return lambda x: x + Held().value()


wrong = []
for make in (by_scope, by_default, by_method):
    torch.compiler.reset()
    compiled = torch.compile(lambda x, function: function(x))
    functions = make(1), make(5)
    for function in functions:
        if not torch.equal(compiled(x, function), function(x)):
            wrong.append(make.__name__)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: the class of the first function is used: {', '.join(wrong)}")
