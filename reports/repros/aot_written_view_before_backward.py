"""The result is a view of what the backward needs (`x.exp().t()`), and is written to before the backward: eager refuses, the compiled program
gives a gradient of the values written. No error. See pytorch#197887 for inputs."""

import torch


def transposed(x):
    return x.exp().t()


def row(x):
    return x.sigmoid()[0]


found = []
for call in (transposed, row):
    torch._dynamo.reset()
    result = torch.compile(call, backend="aot_eager")(torch.ones(2, 3, requires_grad=True))
    with torch.no_grad():
        result.add_(1)
    try:
        result.sum().backward()
        found.append(call.__name__)
    except RuntimeError:
        pass
if found:
    raise SystemExit(f"torch {torch.__version__}: the backward is done all the same: " + ", ".join(found))
