"""Two inputs share memory, one is written, and a view of the other is returned: the compiled call fails. Neighbours of pytorch#198095."""

import torch


def written(whole, rows, view):
    whole.add_(100)
    return view(rows)


VIEWS = {
    "flat": lambda rows: rows.view(-1),
    "transposed": lambda rows: rows.t(),
    "sliced": lambda rows: rows[:, ::2],
    "chunks": lambda rows: rows.chunk(2, 1)[1],
}
failed = []
for name, view in VIEWS.items():
    torch._dynamo.reset()
    whole = torch.arange(24.0).view(4, 6)
    expected = view((whole + 100)[1:])
    try:
        result = torch.compile(lambda w, r, view=view: written(w, r, view))(whole, whole[1:])
    except Exception as error:
        failed.append(f"{name}: {type(error).__name__}")
        continue
    if not torch.equal(result, expected):
        failed.append(f"{name}: other values")
if failed:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(failed)}")
