"""pytorch#160472: a custom op and its fake change their dtype from one process to the next."""

import multiprocessing
import os
import sys
import tempfile

import torch


def run(dtype):
    @torch.library.custom_op("corpus160472::cast", mutates_args=())
    def cast(x: torch.Tensor) -> torch.Tensor:
        return x.to(dtype).clone() if x.dtype is dtype else x.to(dtype)

    cast.register_fake(lambda x: torch.empty_like(x, dtype=dtype))
    f = torch.compile(lambda x: cast(x) * 1.0009765625 + x.to(dtype))
    try:
        out = f(torch.arange(4.0))
    except Exception as e:
        return type(e).__name__
    return str(out.dtype), out.float().tolist()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        got = []
        for dtype in (torch.float32, torch.float64):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                got.append(pool.apply(run, (dtype,)))
    print(got)
    sys.exit(got[1][0] != "torch.float64")
