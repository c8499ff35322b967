"""pytorch#198131: dst[:] = src[:], then src is written: the copy must hold the old values."""

import torch


def snapshot(dst, src):
    dst[:] = src[:]
    src.add_(100)
    return src


dst, src = torch.zeros(2, 3), torch.arange(6.0).view(2, 3)
d2, s2 = dst.clone(), src.clone()
snapshot(dst, src)
torch.compile(snapshot)(d2, s2)
torch.testing.assert_close(d2, dst, msg=lambda m: "the copy was taken after src had been updated\n" + m)
