"""pytorch#187319: two processes share a cache; in the second one the same custom op writes to its argument."""

import multiprocessing
import os
import sys
import tempfile

import torch


def run(mutates):
    @torch.library.custom_op("corpus187319::accumulate", mutates_args=("x",) if mutates else ())
    def accumulate(x: torch.Tensor, y: torch.Tensor) -> None:
        if mutates:
            x.add_(y)

    @accumulate.register_fake
    def _(x, y):
        return None

    @torch.compile
    def f(x, y):
        z = x + 0
        accumulate(z, y)
        return z * 2

    return f(torch.ones(2), torch.full((2,), 10.0)).tolist()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        context = multiprocessing.get_context("fork")
        results = []
        for mutates in (False, True):
            with context.Pool(1) as pool:
                results.append(pool.apply(run, (mutates,)))
    print("pure op:", results[0], "mutating op:", results[1])
    sys.exit(results != [[2.0, 2.0], [22.0, 22.0]])
