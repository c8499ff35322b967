"""The same program in two processes with one cache folder: equal results."""

import multiprocessing
import os
import tempfile

import torch


def run():
    x = torch.arange(6.0, requires_grad=True)
    y = torch.compile(lambda t: (t.sin() * 2).sum())(x)
    y.backward()
    return y.item(), x.grad.tolist()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        results = []
        for _ in range(2):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                results.append(pool.apply(run))
    assert results[0] == results[1]
    x = torch.arange(6.0)
    torch.testing.assert_close(torch.tensor(results[0][1]), 2 * x.cos())
