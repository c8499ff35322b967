"""Comparisons, containers, exceptions, generators and classes of plain Python that come out otherwise in a compiled function."""

import abc
import collections
import functools
import random

import torch

Pair = collections.namedtuple("Pair", "first second")


class Made(metaclass=type("Maker", (type,), {"__call__": lambda cls, *args: ("made", *args)})):
    pass


class IsFive(metaclass=type("Five", (type,), {"__instancecheck__": lambda cls, one: one == 5})):
    pass


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        raise NotImplementedError


def full():
    return collections.deque([1, 2, 3], maxlen=3)


def full_deque(values):
    values.append(9)
    return values.maxlen, list(values)


def inserted_into_full(values):
    try:
        values.insert(1, 9)
    except IndexError:
        return "refused"
    return list(values)


def key_error():
    try:
        {"a": 1}["b"]
    except KeyError as error:
        return error.args


def nan_as_key():
    nan = float("nan")
    return nan in {nan: 1}


def loop_is_left():
    seen = []

    def values():
        try:
            yield 1
            yield 2
        finally:
            seen.append("finally")

    for value in values():
        seen.append(value)
        break
    return seen


def yielded_constant():
    def inner():
        yield 1
        return 5

    def outer():
        yield (yield from inner())

    return list(outer())


def wrapped():
    def double(value):
        """Twice."""
        return value * 2

    @functools.wraps(double)
    def wrapper(value):
        return double(value)

    return wrapper.__doc__


def abstract_class():
    try:
        Shape()
    except TypeError:
        return "refused"
    return "made"


def times_in_place(values):
    values *= 2
    return values


def state_set_back():
    state = random.getstate()
    first = random.random()
    random.setstate(state)
    return type(first == random.random()).__name__


def deleted_twice(values):
    try:
        del values["b"]
    except KeyError:
        return "refused"


def tag_is_deleted(x):
    del x.tag
    return hasattr(x, "tag")


def tagged():
    x = torch.ones(2)
    x.tag = 1
    return x


def own_generator(generator):
    return generator.random()


def own_generator_shuffles(generator):
    values = list(range(8))
    generator.shuffle(values)
    return values


CALLS = {
    "a list and a tuple": (lambda: ([1] == (1,), [1, 2] != (1, 2)), ()),
    "a namedtuple and a tuple": (lambda: Pair(1, 2) == (1, 2), ()),
    "in range": (lambda: type(3 in range(0, 9, 3)).__name__, ()),
    "called class": (lambda: Made(7), ()),
    "asked instance": (lambda: isinstance(5, IsFive), ()),
    **{one.__name__: (one, ()) for one in (key_error, nan_as_key, loop_is_left)},
    **{one.__name__: (one, ()) for one in (yielded_constant, wrapped, abstract_class, state_set_back)},
    "full deque": (full_deque, (full,)),
    "inserted into full": (inserted_into_full, (full,)),
    "times in place": (times_in_place, (lambda: [3, 1],)),
    "deleted twice": (deleted_twice, (lambda: {"a": 1},)),
    "tag is deleted": (tag_is_deleted, (tagged,)),
    "own generator": (own_generator, (lambda: random.Random(3),)),
    "own generator shuffles": (own_generator_shuffles, (lambda: random.Random(3),)),
}


def twice(call, make) -> str:
    """Two calls with the same objects, and what became of these. A sum of tensors, so that there is something to compile."""
    torch._dynamo.reset()
    random.seed(5)

    def program(x, *given):
        return x + 1, call(*given)

    run = torch.compile(program) if twice.compiled else program
    given = [one() for one in make]
    try:
        said = [run(torch.ones(2), *given)[1] for _ in range(2 if "tag" not in call.__name__ else 1)]
        return f"{said} {[one for one in given if isinstance(one, (list, dict))]}"
    except Exception as error:
        return type(error).__name__


found = []
for name, (call, make) in CALLS.items():
    twice.compiled = False
    want = twice(call, make)
    twice.compiled = True
    if (got := twice(call, make)) != want:
        found.append(f"{name}: {got}, eager {want}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
