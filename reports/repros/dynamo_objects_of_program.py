"""Python's rules for objects that a program makes: `__dict__` that is replaced keeps the old attributes, "{a.v}".format finds no attribute,
`in` gives what __eq__ gives, super(1, x) is no error, and a module takes a submodule before Module.__init__."""

import torch


class Plain:
    def __init__(self):
        self.v = 3


class EqualToAll:
    def __eq__(self, other):
        return "equal"


class Hasty(torch.nn.Module):
    def __init__(self):
        self.layer = torch.nn.ReLU()


def dict_replaced(x):
    thing = Plain()
    thing.__dict__ = {"q": 1}
    return x + 1, hasattr(thing, "v")


def attribute_in_format(x):
    return x + 1, "{a.v} {b[k]}".format(a=Plain(), b={"k": 1})


def member(x):
    return x + 1, EqualToAll() in [3]


def super_of_number(x):
    try:
        super(1, Plain())
    except TypeError:
        return x + 1, "refused"
    return x + 1, "made"


def module_before_init(x):
    try:
        Hasty()
    except AttributeError:
        return x + 1, "refused"
    return x + 1, "made"


found = []
for call in (dict_replaced, attribute_in_format, member, super_of_number, module_before_init):
    torch._dynamo.reset()
    expected = call(torch.ones(2))[1]
    try:
        got = torch.compile(call, backend="eager")(torch.ones(2))[1]
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if got != expected:
        found.append(f"{call.__name__}: {got!r}, eager gives {expected!r}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
