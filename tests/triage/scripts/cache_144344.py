"""pytorch#144344: the backward of a custom op is edited; the next process still runs the old one from the cache."""

import multiprocessing
import os
import tempfile

import torch


def train(factor):
    @torch.library.custom_op("corpus144344::ident", mutates_args=())
    def ident(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    ident.register_fake(lambda x: torch.empty_like(x))
    ident.register_autograd(lambda ctx, grad: factor * grad)
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda t: ident(t).sum())(x).backward()
    return x.grad.tolist()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for factor in (3.0, 5.0):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                grad = pool.apply(train, (factor,))
            print(f"backward multiplies by {factor}: gradient {grad}")
            assert grad == [factor] * 3, "gradient of an older process"
