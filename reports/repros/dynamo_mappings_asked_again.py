"""What a dict holds changes after the compile: `not`, `repr`, `popitem`, `pop`, `match` and copies answer as at the first call."""

import torch


def last_taken(d):
    try:
        return d.popitem()
    except KeyError:
        return "empty"


def matched(d):
    match d:
        case {"a": _}:
            return "a"
        case _:
            return "none"


PROGRAMS = {
    "not": (lambda d: not d, {}, {"a": 1}),
    "repr": (repr, {}, {"a": 1}),
    "popitem": (last_taken, {}, {"a": 1}),
    "pop": (lambda d: (d.pop("a", 3), dict(d)), {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}),
    "match": (matched, {}, {"a": 1}),
    "copy": (lambda d: list(d.copy()), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
}
x, wrong = torch.ones(3), []
for name, (asked, first, second) in PROGRAMS.items():
    torch.compiler.reset()

    def program(x, d, asked=asked):
        return x + 1, asked(d)

    compiled = torch.compile(program, backend="eager")
    compiled(x, dict(first))
    ours, theirs = dict(second), dict(second)
    seen, expected = (compiled(x, ours)[1], ours), (program(x, theirs)[1], theirs)
    if seen != expected:
        wrong.append(f"{name}: {seen}, eager {expected}")
print("\n".join(wrong) or "right")
raise SystemExit(bool(wrong))
