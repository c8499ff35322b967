"""torch.index_add with a source of too few dims: eager raises, the compiled call broadcasts it.

Eager: "source tensor shape must match self tensor shape, excluding the specified dimension". Found by `conformance ops` (form `errors`)
on torch 2.15.0. Needs torch alone; exits 1 while the defect is there.
"""

import sys

import torch


def raises(function):
    try:
        function(torch.zeros(3, 2), torch.tensor([0, 1]), torch.ones(2))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def add(x, index, source):
    return torch.index_add(x, 0, index, source)


eager, compiled = raises(add), raises(torch.compile(add))
print("torch", torch.__version__, "| eager:", eager or "no error", "| compiled:", compiled or "no error")
sys.exit(bool(eager) and not compiled)
