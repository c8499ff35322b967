"""Two inputs are one storage seen in two dtypes: compiled, a write through the first is not read through the second."""

import torch


def f(words, halves):
    words.fill_(1)
    return halves + 0


want_base, got_base = torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
want = f(want_base, want_base.view(torch.int16))
got = torch.compile(f)(got_base, got_base.view(torch.int16))
assert torch.equal(want, got) and torch.equal(want_base, got_base)
