"""torch.complex with an `out=` of another dtype: eager raises, the compiled call writes into it.

Eager: "Expected object of scalar type ComplexDouble but got scalar type ComplexFloat for argument 'out'". The decomposition does not
check. Found by `conformance ops` (form `errors`) on torch 2.15.0. Needs torch alone; exits 1 while the defect is there.
"""

import sys

import torch


def raises(function):
    x, out = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.complex64)
    try:
        function(x, x, out=out)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


eager, compiled = raises(torch.complex), raises(torch.compile(lambda x, y, out: torch.complex(x, y, out=out)))
print("torch", torch.__version__, "| eager:", eager or "no error", "| compiled:", compiled or "no error")
sys.exit(bool(eager) and not compiled)
