"""What each micrograph reaches in the compilers' source, and what it shows there when nothing is changed."""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from conformance import backends, library
from conformance.backends.base import Case
from conformance.errors import UsageError
from conformance.examine import examine
from conformance.expectations import Expectations
from conformance.fresh import FRESH
from conformance.json_line import plain
from conformance.judge import Judge, Result, is_wrong
from conformance.line_store import LineStore
from conformance.measure import CaseServer
from conformance.micrograph import Micrograph
from conformance.mutants import reach
from conformance.plan import THREADS
from conformance.processes import Job
from conformance.stage import Stage
from conformance.target import Target
from conformance.trace import Trace

LIMIT = 600.0  # seconds for one micrograph


@dataclass
class Surveyed:
    """One micrograph: the blocks that it reaches (as bits), and its cells as a record has them."""

    micrograph: str
    backend: str
    target: str
    torch: str
    blocks: int  # of this version's source
    bits: str
    seconds: float
    right: bool  # nothing was found at any stage: what a mutant shows then is the mutant's
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.backend}/{self.target}/{self.micrograph}"

    @cached_property
    def reached(self) -> frozenset[int]:
        packed = zlib.decompress(base64.b64decode(self.bits))
        return frozenset(number for number in range(self.blocks) if packed[number >> 3] >> (number & 7) & 1)


def bits(reached: Iterable[int], blocks: int) -> str:
    packed = bytearray(-(-blocks // 8))
    for number in reached:
        packed[number >> 3] |= 1 << (number & 7)
    return base64.b64encode(zlib.compress(bytes(packed), 9)).decode()


class Survey(LineStore[Surveyed]):
    """A file of them, for one version of torch."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, Surveyed, lambda one: one.key)
        for one in self.known.values():
            if one.torch != torch.__version__:
                raise UsageError(
                    f"{path} surveys torch {one.torch}, and here is {torch.__version__}: name another file"
                )

    def all(self, backend: str, target: str) -> list[Surveyed]:
        return [one for one in self.known.values() if (one.backend, one.target) == (backend, target)]


def survey(names: Sequence[str], backend: str, target: str, workers: int) -> Iterator[Surveyed | str]:
    """Each micrograph as it is done; of one whose process died, a line that says how."""
    server = CaseServer()
    server.prepare([(backend, target)])
    server.call(reach.instrument)
    jobs = [Job(name, _one, (name, backend, target)) for name in names]
    try:
        for event in server.run(jobs, workers, LIMIT):
            if event.said is not None:
                yield event.said
            elif event.death is not None:
                yield f"{event.job.key}: {event.death.reason}"
    finally:
        server.close()


def _one(name: str, backend: str, target: str, say: Callable[[Surveyed], None]) -> None:
    torch.set_num_threads(THREADS)
    seen = reach.watch()
    start = time.monotonic()
    micrograph = library.find(name)
    FRESH.prepare()
    trace = examined(micrograph, backend, target)
    results = Judge(Expectations([], {})).results(trace, micrograph)
    count = len(reach.blocks())
    say(
        Surveyed(
            name,
            backend,
            target,
            torch.__version__,
            count,
            bits(reach.reached(seen), count),
            round(time.monotonic() - start, 2),
            all(str(result.verdict) in ("pass", "unavailable") for result in results.values()),
            {str(result.cell): line(result) for result in results.values()},
        )
    )


def examined(
    micrograph: type[Micrograph], backend: str, target: str, progress: Callable[[Stage], None] | None = None
) -> Trace:
    case = Case(micrograph, Target.parse(target))
    instance = backends.get(backend)
    tell = progress or (lambda stage: None)
    return examine(case, instance, stop=lambda trace: is_wrong(trace, micrograph), progress=tell)


def line(result: Result) -> dict[str, Any]:
    """What a baseline asks of a record's line."""
    return dict(plain(result.to_json() | {"texts": sorted(result.observation.texts)}))
