"""`x._base` of an input that is a view is None in the graph, and the compile fails: TypeError, unsupported operand NoneType.
A write by as_strided to elements in front of the part is lost without an error. See pytorch#140171."""

import torch

found = []
whole = torch.arange(20.0)
try:
    torch.compile(lambda x: x._base + 1, backend="aot_eager")(whole[5:10])
except Exception as error:
    found.append(f"_base: {type(error).__name__}")
torch._dynamo.reset()
torch.compile(lambda x: x.as_strided((5,), (1,), 0).add_(1) * 3, backend="aot_eager")(whole[5:10])
if whole[0] != 1:
    found.append("the write to the first five elements is lost")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))
