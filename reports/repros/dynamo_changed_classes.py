"""A class attribute, method or property that the program itself sets is not seen through objects and subclasses (torch 2.15)."""

import torch


def method(x):
    class A:
        def told(self):
            return 1.0

    A.told = lambda self: 5.0
    return x * A().told()


def value_of_subclass(x):
    class A:
        value = 1.0

    class B(A):
        pass

    A.value = 5.0
    return x * B.value


def value_of_object(x):
    class A:
        value = 1.0

    held = A()
    A.value = 5.0
    return x * held.value


class Known:
    value = 1.0

    def told(self):
        return 1.0


held = Known()


def value_of_known(x):
    Known.value = 5.0
    Known.told = lambda self: 3.0
    told = x * held.value * held.told()
    Known.value = 1.0
    return told


x, wrong = torch.ones(3), []
for program in (method, value_of_subclass, value_of_object, value_of_known):
    torch.compiler.reset()
    want = program(x)
    Known.told = lambda self: 1.0
    try:
        if not torch.equal(torch.compile(program)(x), want):
            wrong.append(program.__name__)
    except Exception as error:
        wrong.append(f"{program.__name__} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: the old attribute is used: {', '.join(wrong)}")
