import torch


def f(x):
    if x.sum() > 0:
        x = x * 2
    else:
        x = x - 1
    while x.abs().max() > 4:
        x = x / 2
    for i, row in enumerate(x):
        if i == 1:
            break
        x = x + row
    return x


g = torch.compile(f)
for x in (torch.ones(2, 3), -torch.ones(2, 3), torch.full((2, 3), 40.0)):
    torch.testing.assert_close(g(x), f(x))
