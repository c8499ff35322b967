"""`del o.p` of an attribute that is gone raises KeyError and not AttributeError, `o.__dict__.clear()` raises KeyError where there is nothing
to clear, and `del module.bias` goes through where there is none any more: the second call runs what was compiled for the first."""

import types

import torch


def delete(x, o):
    del o.p
    return x + 1


def clear(x, o):
    o.__dict__.clear()
    return x + 1


def parameter(x, o):
    del o.bias
    return x + 1


def said(call, o):
    out = []
    for _ in range(2):
        try:
            call(torch.zeros(1), o)
            out.append("went through")
        except Exception as error:
            out.append(type(error).__name__)
    return out


found = []
for call, make in (
    (delete, lambda: types.SimpleNamespace(p=1)),
    (clear, lambda: types.SimpleNamespace(p=1)),
    (parameter, lambda: torch.nn.Linear(1, 1)),
):
    torch._dynamo.reset()
    compiled = said(torch.compile(call, backend="eager"), make())
    if compiled != said(call, make()):
        found.append(f"{call.__name__}: {compiled}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
