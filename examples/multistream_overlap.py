"""Two CUDA streams that overlap, held together by events; measured and printed.

Graph passes do not schedule streams: they make fewer and bigger kernels, which leaves more to overlap. What a runtime then
does by hand is shown here: record an event when a result is ready, make the other stream wait for exactly that event.

    python examples/multistream_overlap.py [--size 2048] [--rounds 20]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

WITHOUT_GPU = """There is no GPU here (torch.cuda.is_available() is false), so nothing is measured. On a GPU this would:
  1. run two chains of small matmuls on one stream, one after the other            -> serial time
  2. run them on two streams, the join waiting for an event of each                -> overlapped time
  3. print both, the share of time that overlapped, and whether the results agree
Kernels of one stream run in order; kernels of two run together as long as the GPU has room. An event is a mark in a
stream: `event.record(a)` sets it, `b.wait_event(event)` holds stream b until it is reached. The CPU waits for neither."""


def chain(x: torch.Tensor, weight: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        x = torch.tanh(x @ weight)
    return x


def serial(inputs: list[torch.Tensor], weight: torch.Tensor, steps: int) -> torch.Tensor:
    first, second = (chain(x, weight, steps) for x in inputs)
    return first + second


def overlapped(inputs: list[torch.Tensor], weight: torch.Tensor, steps: int, side: torch.cuda.Stream) -> torch.Tensor:
    """The second chain on a side stream. Two events: the inputs are ready, the side result is ready."""
    main = torch.cuda.current_stream()
    ready, done = torch.cuda.Event(), torch.cuda.Event()
    ready.record(main)
    with torch.cuda.stream(side):
        side.wait_event(ready)
        second = chain(inputs[1], weight, steps)
        done.record(side)
    first = chain(inputs[0], weight, steps)
    main.wait_event(done)
    second.record_stream(main)  # its memory must not be reused before `main` has read it
    return first + second


def milliseconds(run: Callable[[], torch.Tensor], rounds: int) -> float:
    run()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(rounds):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / rounds


def measure(size: int, steps: int, rounds: int) -> None:
    inputs = [torch.randn(16, size, device="cuda") for _ in range(2)]
    weight = torch.randn(size, size, device="cuda") / size**0.5
    side = torch.cuda.Stream()
    alone = milliseconds(lambda: serial(inputs, weight, steps), rounds)
    together = milliseconds(lambda: overlapped(inputs, weight, steps, side), rounds)
    same = torch.allclose(serial(inputs, weight, steps), overlapped(inputs, weight, steps, side), rtol=1e-4, atol=1e-4)
    print(f"{torch.cuda.get_device_name()}: two chains of {steps} matmuls, (16, {size}) x ({size}, {size})")
    print(f"one stream   {alone:8.3f} ms")
    print(
        f"two streams  {together:8.3f} ms, {100 * max(0.0, alone - together) / (alone / 2):.0f} % of one chain hidden behind the other"
    )
    print(f"results agree: {same}")
    if not same:
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(WITHOUT_GPU)
        return
    start = time.perf_counter()
    with torch.no_grad():
        measure(options.size, options.steps, options.rounds)
    print(f"took {time.perf_counter() - start:.1f} s; for a timeline: nsys profile python {__file__}")


if __name__ == "__main__":
    main()
