"""A tensor is written to by index from what it holds itself: it is read again after it was written. See pytorch#174074, #175903, #156786."""

import torch


def added_twice(x):
    x[[0, 0]] += x[[0, 0]]
    return x


def own_rows(x):
    x.copy_(x.index_put((torch.tensor([1, 2]),), x[:2]))
    return x


def one_place_of_permutation(x):
    places = torch.as_strided(torch.randperm(4), (4,), (0,))
    x.index_put_((places,), x[places] + 1)
    return x.amax(), x.sum()


found = []
for call, x in (
    (added_twice, torch.ones(1, 2)),
    (own_rows, torch.arange(12.0).view(4, 3)),
    (one_place_of_permutation, torch.zeros(4)),
):
    torch._dynamo.reset()
    want, got = call(x.clone()), torch.compile(call)(x.clone())
    if not all(torch.equal(*pair) for pair in zip(want, got, strict=True)):
        found.append(call.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: wrong values: " + ", ".join(found))
