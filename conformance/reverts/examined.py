"""Micrographs in an interpreter of its own, which may have an overlay: `python -m conformance.reverts.examined ORDER.json OUT.jsonl`.

The order names micrographs, the cells that they have without the overlay, and how many that differ are enough. Those are examined once
more at the end: what comes and goes is no difference. Nothing is judged by expectations or by recorded runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from conformance import bytecode, library
from conformance.expectations import Expectations
from conformance.fresh import FRESH
from conformance.judge import Judge
from conformance.measure import CaseServer
from conformance.mutants.survey import examined, line
from conformance.plan import THREADS
from conformance.processes import Job
from conformance.reverts.cells import PLACE, Cells, died, differences
from conformance.stage import Stage

LIMIT = 150.0  # seconds for a micrograph


class Examiner:
    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.server = CaseServer()
        self.server.prepare([PLACE])

    def cells(self, names: Sequence[str]) -> Iterator[tuple[str, Cells]]:
        """Each micrograph with its cells; of one whose process died, the stage at which it did."""
        at: dict[str, str] = {}
        for event in self.server.run([Job(name, _one, (name,)) for name in names], self.workers, LIMIT):
            if isinstance(event.said, Stage):
                at[event.job.key] = event.said.value
            elif event.said is not None:
                yield event.job.key, event.said
            elif event.death is not None:
                yield event.job.key, died(event.job.key, at.get(event.job.key, "capture"), event.death)


def _one(name: str, say: Callable[[Any], None]) -> None:
    torch.set_num_threads(THREADS)
    micrograph = library.find(name)
    FRESH.prepare()
    trace = examined(micrograph, *PLACE, progress=say)
    say({str(r.cell): line(r) | {"texts": {}} for r in Judge(Expectations([], {})).results(trace, micrograph).values()})


def main(order: Path, out: Path) -> None:
    asked = json.loads(order.read_text(encoding="utf-8"))
    examiner, known, differing = Examiner(asked["workers"]), asked["known"], []
    with out.open("w", encoding="utf-8") as file:

        def tell(name: str, cells: Cells, again: bool) -> None:
            file.write(json.dumps({"micrograph": name, "again": again, "cells": cells}) + "\n")
            file.flush()

        names = list(asked["names"])
        step = 2 * asked["workers"]
        for some in (names[at : at + step] for at in range(0, len(names), step)):
            for name, cells in examiner.cells(some):
                tell(name, cells, False)
                if differences(known, cells):
                    differing.append(name)
            if len(differing) >= asked["enough"]:
                break
        for name, cells in examiner.cells(differing[: asked["enough"]]) if differing else ():
            tell(name, cells, True)
    examiner.server.close()


if __name__ == "__main__":
    bytecode.keep()
    main(Path(sys.argv[1]), Path(sys.argv[2]))
