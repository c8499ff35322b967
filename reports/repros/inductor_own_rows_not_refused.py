"""index_put_ of a tensor's own rows: eager refuses it, since one is read where another is written; the compiled call does not. See
pytorch#156786."""

import torch

index = torch.tensor([0, 1])
CALLS = {
    "index_put_": lambda x: x.index_put_((index,), x[2:]),
    "index_add_": lambda x: x.index_add_(0, index, x[2:]),
    "index_copy_": lambda x: x.index_copy_(0, index, x[2:]),
    "scatter_": lambda x: x.scatter_(0, index[:, None].expand(2, 3), x[2:]),
}


def refuses(call) -> bool:
    torch._dynamo.reset()
    try:
        call(torch.randn(4, 3))
    except Exception:
        return True
    return False


taken = [name for name, call in CALLS.items() if refuses(call) and not refuses(torch.compile(call))]
if taken:
    raise SystemExit(f"torch {torch.__version__}: eager refuses, the compiled call does not: " + ", ".join(taken))
