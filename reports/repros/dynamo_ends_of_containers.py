"""Containers, ranges and texts beyond their ends: another answer than Python's, another text, or an internal error."""

import collections

import torch

ASKED = {
    "list.pop beyond": lambda: [1].pop(1),
    "list.index": lambda: [1].index(3),
    "list.remove": lambda: [1].remove(3),
    "deque.index": lambda: collections.deque([1]).index(3),
    "deque set": lambda: collections.deque([1]).__setitem__(5, 1),
    "maxlen -1": lambda: collections.deque([1], -1),
    "range has": lambda: 2.5 in range(5),
    "equal ranges": lambda: range(0) == range(2, 2),
    "list and tuple": lambda: [1] == (1,),
    "del d[k]": lambda: {1: 2}.__delitem__(3),
    "d[[1]]": lambda: {1: 2}[[1]],
    "pop of a key": lambda: {1: 2}.pop(3),
    "set of lists": lambda: {1} & {2} | set([1]) - set("a") if 3 in {1} else set([[1]]),
    "keys | list": lambda: sorted({1: 2}.keys() | [3]),
    "frozenset.add": lambda: frozenset([1]).add(2),
    "str.index": lambda: "abc".index("x"),
    "join": lambda: ",".join([1]),
    "format": lambda: "{} {}".format(1),
    "split": lambda: "abc".split(""),
    "next": lambda: next(iter([])),
    "tuple index": lambda: (1, 2)[5],
    "list + tuple": lambda: [1] + (2,),
}
x = torch.ones(1)
wrong = []
for name, ask in ASKED.items():
    torch.compiler.reset()

    def program(x, ask=ask):
        try:
            return x * 3, ask()
        except Exception as error:
            return x * 2, type(error).__name__, str(error)

    try:
        made = torch.compile(program, backend="eager")(x)[1:]
    except Exception as error:
        made = (type(error).__name__,)
    if made != program(x)[1:]:
        wrong.append(f"{name}: {made[-1]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
