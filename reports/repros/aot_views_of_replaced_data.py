"""x.data is replaced after a view of x was taken: the view shows the new data. Exchanged data is lost."""

import torch


def one_row(x):
    row = x[0]
    x.data = torch.full((2, 3), 7.0)
    return row


def flattened(x):
    flat = x.view(6)
    x.data = torch.full((2, 3), 7.0)
    return flat


def detached(x):
    old = x.detach()
    x.data = torch.full((2, 3), 7.0)
    return old * 1


wrong = []
for program in (one_row, flattened, detached):
    torch.compiler.reset()
    want = program(torch.ones(2, 3))
    try:
        if not torch.equal(torch.compile(program)(torch.ones(2, 3)), want):
            wrong.append(program.__name__)
    except Exception as error:
        wrong.append(f"{program.__name__} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")
