"""pytorch#160472: the layout of a custom op and its fake changes between two processes that share a cache."""

import multiprocessing
import os
import sys
import tempfile

import torch


def run(columns_first):
    @torch.library.custom_op("corpus160472b::lay", mutates_args=())
    def lay(x: torch.Tensor) -> torch.Tensor:
        return x.t().contiguous().t() if columns_first else x.clone()

    @lay.register_fake
    def _(x):
        return torch.empty_like(x).t().contiguous().t() if columns_first else torch.empty_like(x)

    f = torch.compile(lambda x: lay(x) + 1)
    try:
        out = f(torch.arange(12.0).view(3, 4))
    except Exception as e:
        return type(e).__name__, str(e)[:100]
    return out.stride(), out.tolist()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        got = []
        for columns_first in (False, True):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                got.append(pool.apply(run, (columns_first,)))
    want = (torch.arange(12.0).view(3, 4) + 1).tolist()
    print(got[0][0], got[1][0], got[1][1] == want)
    sys.exit(got[1] != ((1, 3), want))
