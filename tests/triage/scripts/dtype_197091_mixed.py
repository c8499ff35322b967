"""pytorch#197091: ldexp(half, float32) promotes otherwise than eager."""

import torch

mantissa = torch.rand(8, dtype=torch.half)
exponent = torch.full((8,), 2.0)
want = torch.ldexp(mantissa, exponent)
got = torch.compile(torch.ldexp)(mantissa, exponent)
assert got.dtype is want.dtype, f"eager gives {want.dtype}, compiled gives {got.dtype}"
torch.testing.assert_close(got, want)
