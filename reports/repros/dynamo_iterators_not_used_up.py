"""any, all, sum, math.prod, bytes, set.union and operator.countOf read an iterator of a list, and it still has all that they read. No error."""

import math
import operator

import torch

readers = {
    "any": any,
    "all": all,
    "sum": sum,
    "math.prod": math.prod,
    "math.fsum": math.fsum,
    "bytes": bytes,
    "set.union": lambda source: {1}.union(source),
    "operator.countOf": lambda source: operator.countOf(source, 1),
}
wrong = []
for name, reader in readers.items():

    def program(x, reader=reader):
        source = iter([1, 2, 3])
        told = reader(source)
        return x + 1, told, list(source)

    torch._dynamo.reset()
    if torch.compile(program, backend="eager")(torch.ones(2))[1:] != program(torch.ones(2))[1:]:
        wrong.append(name)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")
