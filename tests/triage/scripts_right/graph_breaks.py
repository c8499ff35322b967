import io
from contextlib import redirect_stdout

import torch


def f(x, log):
    y = torch.sin(x)
    print("mean", round(y.mean().item(), 3))
    torch._dynamo.graph_break()
    log.append(y.sum().item() > 0)
    z = y.relu()
    return z.tolist(), z + 1


texts, logs, results = [], [], []
for fn in (f, torch.compile(f)):
    out, log = io.StringIO(), []
    with redirect_stdout(out):
        results.append([fn(torch.ones(3) * k, log) for k in (1.0, -1.0, 1.0)])
    texts.append(out.getvalue())
    logs.append(log)
assert texts[0] == texts[1] and logs[0] == logs[1]
for (a, b), (c, d) in zip(*results, strict=True):
    assert torch.allclose(torch.tensor(a), torch.tensor(c)) and torch.allclose(b, d)
