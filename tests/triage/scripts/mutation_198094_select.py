"""pytorch#198094: the same with select_scatter and fill_."""

import torch


class Frame(torch.nn.Module):
    def forward(self, x, row):
        kept = x.select_scatter(row, 0, 2)
        x.fill_(7.0)
        return kept


m = Frame()
x, row = torch.randn(4, 6), torch.ones(6)
want = m(x.clone(), row)
got = torch.compile(m)(x.clone(), row)
torch.testing.assert_close(got, want, msg="select_scatter result overwritten by the later fill_ of its input")
