"""pytorch#160472: a custom op that returns another shape is served what was compiled for the old one."""

import multiprocessing
import sys

import torch


def work(times):
    @torch.library.custom_op("third::repeat", mutates_args=())
    def repeat(x: torch.Tensor) -> torch.Tensor:
        return x.repeat(times)

    repeat.register_fake(lambda x: x.new_empty(times * x.shape[0]))
    got = torch.compile(lambda x: repeat(x) + 1.0)(torch.arange(3.0))
    sys.exit(got.shape != (3 * times,))


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for times in (2, 3):
        child = context.Process(target=work, args=(times,))
        child.start()
        child.join()
        print(times, "times: exit", child.exitcode)
    sys.exit(child.exitcode != 0)
