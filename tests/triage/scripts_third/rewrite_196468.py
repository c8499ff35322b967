"""pytorch#196468: a softmax over the queries is taken for attention."""

import argparse

import torch


def block(q, k, v, dim):
    return torch.softmax(torch.matmul(q, k.transpose(-2, -1)).div(3.0), dim=dim).matmul(v)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=-2)
    parser.add_argument("--heads", type=int, default=4)
    options = parser.parse_args()
    torch.manual_seed(0)
    q, k, v = (torch.randn(4, options.heads, size, 8) for size in (2, 3, 3))
    want = block(q, k, v, options.dim)
    got = torch.compile(block)(q, k, v, options.dim)
    print("largest difference", (want - got).abs().max().item())
    return 0 if torch.allclose(want, got, atol=1e-4) else 3


if __name__ == "__main__":
    raise SystemExit(main())
