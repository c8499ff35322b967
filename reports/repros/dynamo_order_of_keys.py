"""The order and the number of a dict's keys are not guarded: `list(d)`, `[*d]`, `{**d}`, `str(d)`, `bool(d)` of a dict that the caller gives
say in the next call what the first dict said. No error."""

import collections

import torch


def stars(x, d):
    return x + 1, [*d]


def text(x, d):
    return x + 1, str(d)


def truth(x, d):
    return x + 1, bool(d)


def joined(x, d):
    return x + 1, ",".join(d)


def copied(x, d):
    return x + 1, list({**d})


found = []
for call in (stars, text, truth, joined, copied):
    for made in (dict, collections.OrderedDict):
        torch._dynamo.reset()
        compiled = torch.compile(call, backend="eager")
        given = [made(p=1, q=2), made(q=2, p=1), made(p=1, q=2, r=3), made(), made(p=1, q=2)]
        if [compiled(torch.zeros(1), d)[1] for d in given] != [call(torch.zeros(1), d)[1] for d in given]:
            found.append(f"{call.__name__} of {made.__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: a later dict is read as an earlier one: " + ", ".join(found))
