"""A dict of the program's own class whose items(), keys() or order differ from what it holds: dict(), ** and update() take others."""

import torch


class OtherItems(dict):
    def items(self):
        return [("other", 7.0)]


class OtherKeys(dict):
    def keys(self):
        return ["b", "a"]


def named(**given):
    return list(given.items())


def updated(d):
    found = {}
    found.update(d)
    return found


PROGRAMS = {
    "dict of other items": (lambda d: dict(d), OtherItems),
    "** of other items": (lambda d: named(**d), OtherItems),
    "{**} of other items": (lambda d: {**d}, OtherItems),
    "update by other items": (updated, OtherItems),
    "dict of other keys": (lambda d: list(dict(d).items()), OtherKeys),
    "** of other keys": (lambda d: named(**d), OtherKeys),
}
x, wrong = torch.ones(3), []
for name, (asked, kind) in PROGRAMS.items():
    torch.compiler.reset()
    d = kind(a=1.0, b=2.0)

    def program(x, d, asked=asked):
        return x + 1, asked(d)

    try:
        if torch.compile(program)(x, d)[1] != program(x, d)[1]:
            wrong.append(name)
    except Exception as error:
        wrong.append(f"{name} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")
