"""Two CUDA streams that overlap, held together by events; measured, printed, and drawn.

Graph passes do not schedule streams: they make fewer and bigger kernels, which leaves more to overlap. What a runtime then
does by hand is shown here: record an event when a result is ready, make the other stream wait for exactly that event.

Two kernels run together only while the GPU has room for both, and only if the CPU launches them faster than they run. So the
work is a softmax over few, long rows: one thread block a row keeps an eighth of the GPU busy for many times what a launch takes.

    python examples/multistream_overlap.py [--steps 40] [--rounds 10] [--timeline streams.svg]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

SHARE = 8  # each chain uses one SM in so many
LENGTH = 1 << 19  # elements of a row: enough that a step takes far longer than its launch

WITHOUT_GPU = """There is no GPU here (torch.cuda.is_available() is false), so nothing is measured. On a GPU this would:
  1. run two chains of softmaxes, few long rows each, on one stream, one after the other   -> serial time
  2. run them on two streams, the join waiting for an event of each                        -> overlapped time
  3. print both, the share of a chain that was hidden, and whether the results agree
  4. draw which kernel ran when on which stream (--timeline FILE.svg)
Kernels of one stream run in order; kernels of two run together as long as the GPU has room. An event is a mark in a
stream: `event.record(a)` sets it, `b.wait_event(event)` holds stream b until it is reached. The CPU waits for neither."""


def chain(x: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        x = torch.softmax(x, dim=-1)
    return x


def serial(inputs: list[torch.Tensor], steps: int) -> torch.Tensor:
    first, second = (chain(x, steps) for x in inputs)
    return first + second


def overlapped(inputs: list[torch.Tensor], steps: int, side: torch.cuda.Stream) -> torch.Tensor:
    """The second chain on a side stream. Two events: the inputs are ready, the side result is ready."""
    main = torch.cuda.current_stream()
    ready, done = torch.cuda.Event(), torch.cuda.Event()
    ready.record(main)
    with torch.cuda.stream(side):
        side.wait_event(ready)
        second = chain(inputs[1], steps)
        done.record(side)
    first = chain(inputs[0], steps)
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


def kernels(run: Callable[[], torch.Tensor]) -> list[dict[str, Any]]:
    """What the profiler saw of one run: stream, name, start and length in microseconds of each kernel."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    return [
        {"stream": event["args"]["stream"], "name": event["name"], "start": event["ts"], "length": event["dur"]}
        for event in events
        if event.get("cat") == "kernel"
    ]


def picture(seen: list[dict[str, Any]]) -> str:
    """An SVG: a row a stream, a bar a kernel."""
    streams = sorted({one["stream"] for one in seen})
    begin = min(one["start"] for one in seen)
    length = max(one["start"] + one["length"] for one in seen) - begin
    scale, height = 900 / length, 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="1020" height="{height * len(streams) + 44}" font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for row, stream in enumerate(streams):
        top = 8 + row * height
        parts.append(f'<text x="8" y="{top + 18}">stream {stream}</text>')
        for one in seen:
            if one["stream"] == stream:
                left, width = 100 + (one["start"] - begin) * scale, max(one["length"] * scale - 0.5, 0.5)
                colour = ("#2563eb", "#d97706")[row % 2]
                parts.append(
                    f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height - 8}" fill="{colour}"/>'
                )
    parts.append(f'<text x="100" y="{8 + len(streams) * height + 20}">0</text>')
    parts.append(
        f'<text x="1000" y="{8 + len(streams) * height + 20}" text-anchor="end">{length / 1000:.2f} ms</text></svg>'
    )
    return "\n".join(parts)


def measure(steps: int, rounds: int, timeline: Path | None) -> None:
    rows = max(torch.cuda.get_device_properties(0).multi_processor_count // SHARE, 1)
    inputs = [torch.randn(rows, LENGTH, device="cuda") for _ in range(2)]
    side = torch.cuda.Stream()
    alone = milliseconds(lambda: serial(inputs, steps), rounds)
    together = milliseconds(lambda: overlapped(inputs, steps, side), rounds)
    same = torch.equal(serial(inputs, steps), overlapped(inputs, steps, side))
    hidden = 100 * max(0.0, alone - together) / (alone / 2)
    print(f"{torch.cuda.get_device_name()}: two chains of {steps} softmaxes over {rows} rows of {LENGTH}")
    print(f"one stream   {alone:8.3f} ms")
    print(f"two streams  {together:8.3f} ms, {hidden:.0f} % of one chain hidden behind the other")
    print(f"results agree: {same}")
    if timeline is not None:
        timeline.write_text(picture(kernels(lambda: overlapped(inputs, steps, side))))
        print(f"wrote {timeline}")
    if not same:
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--timeline", type=Path, metavar="FILE.svg")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(WITHOUT_GPU)
        return
    start = time.perf_counter()
    with torch.no_grad():
        measure(options.steps, options.rounds, options.timeline)
    print(f"took {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
