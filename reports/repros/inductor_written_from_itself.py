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
    return x.sum()


found = []
for call in (added_twice, own_rows, one_place_of_permutation):
    torch._dynamo.reset()
    x = torch.randn(4, 3)
    if not torch.allclose(call(x.clone()), torch.compile(call)(x.clone())):
        found.append(call.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: wrong values: " + ", ".join(found))
