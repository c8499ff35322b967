"""The real part of a transform of a transposed matrix is a view with the transform's strides in eager; compiled it is a dense copy."""

import torch


def real_part(x):
    return torch.fft.fft2(x).real


x = torch.randn(6, 4).t()
eager, compiled = real_part(x), torch.compile(real_part)(x)
if eager.stride() != compiled.stride():
    raise SystemExit(f"torch {torch.__version__}: eager {eager.stride()}, compiled {compiled.stride()}")
