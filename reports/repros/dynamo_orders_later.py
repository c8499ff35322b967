"""The order of a dict's keys changes after the compile: lists of keys, unpacking, keywords and copies keep the old order."""

from collections import ChainMap, OrderedDict

import torch


def pairs(**given):
    return list(given)


def turned(d):
    d["a"] = d.pop("a")


def moved(d):
    d.move_to_end("a")


def put(d):
    d["a"] = 5.0


TWO = {"a": 2.0, "b": 3.0}
PROGRAMS = {
    "list": (lambda d: list(d), dict, turned),
    "join": (lambda d: "".join(d), dict, turned),
    "*": (lambda d: [*d], dict, turned),
    "**": (lambda d: pairs(**d), dict, turned),
    "copy": (lambda d: list({**d}), dict, turned),
    "values of an OrderedDict": (lambda d: list(d.values()), OrderedDict, moved),
    "list of an OrderedDict": (lambda d: list(d), OrderedDict, moved),
    "a ChainMap": (lambda d: d["a"], lambda two: ChainMap({}, dict(two)), put),
}
x, wrong = torch.ones(3), []
for name, (asked, make, change) in PROGRAMS.items():
    torch.compiler.reset()
    d = make(TWO)

    def program(x, d, asked=asked):
        return x + 1, asked(d)

    compiled = torch.compile(program)
    try:
        compiled(x, d)
        change(d)
        if compiled(x, d)[1] != program(x, d)[1]:
            wrong.append(name)
    except Exception as error:
        wrong.append(f"{name} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: not noticed: {', '.join(wrong)}")
