import torch


def f(x):
    rows = x.view(4, 3)
    rows[1:3].mul_(2)
    rows.t()[0] += 1
    x[-1] = 7
    return rows, x.sum()


a, b = torch.arange(12.0), torch.arange(12.0)
want, got = f(a), torch.compile(f)(b)
torch.testing.assert_close(got, want)
torch.testing.assert_close(b, a)
got[0].zero_()
assert b.count_nonzero() == 0, "the output is a view of the input"
