"""Does the library show the bug? The micrographs that reach its lines, with the overlay; what differs from the survey is asked twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance import paths
from conformance.errors import UsageError
from conformance.mutants.reach import blocks
from conformance.mutants.survey import Survey
from conformance.report.diff import compare, sides
from conformance.report.facts import LOST, MORE
from conformance.report.load import Loaded
from conformance.reverts import choice, expected, revert
from conformance.reverts.bug import Bug
from conformance.reverts.cells import PLACE, Cells, differences, micrograph_of
from conformance.reverts.proof import copies

ENOUGH = 3  # micrographs that show it
LIMIT = 1800.0  # seconds for one bug


class Scorer:
    def __init__(self, survey: Path, folder: Path, workers: int = 1, most: int = choice.MOST) -> None:
        self.folder, self.workers, self.most = folder, workers, most
        self.installed = revert.installed_root()
        self.surveyed = Survey(survey).all(*PLACE)
        self.plain: Cells = {cell: line for one in self.surveyed for cell, line in one.cells.items()}
        folder.mkdir(parents=True, exist_ok=True)

    def score(self, bug: Bug, checkout: Path) -> dict[str, Any]:
        """What is to be kept of the bug."""
        start = time.monotonic()
        names = choice.choose(bug.changed, blocks(), self.surveyed, self.most)
        if not names:
            return {"scored": True, "detail": "no micrograph reaches its files"}
        overlay = revert.state("overlays") / bug.commit[:12]
        if refusal := revert.revert(checkout, bug.commit, bug.files, self.installed, overlay):
            raise UsageError(f"{bug.commit[:12]}: {refusal}")
        once, twice = self._examined(names, self.plain, overlay)
        differing = differences(self.plain, once)
        kept = differences(self.plain, twice)
        differing = {cell: how for cell, how in differing.items() if kept.get(cell) == how}
        if differing:  # is it the bug's, and no other day's? The same mechanism with the installed text
            again = list(dict.fromkeys(micrograph_of(cell) for cell in differing))
            unchanged, _ = self._examined(again, {}, copies(bug.files, self.installed, self.folder / "copies"))
            kept = differences(unchanged, twice)
            differing = {cell: how for cell, how in differing.items() if kept.get(cell) == how}
        found = told(differing, bug) | {"moved": facts_moved(self.plain, once)[:20]}
        ran = len({micrograph_of(cell) for cell in once})
        return found | {"scored": True, "detail": "", "ran": ran, "seconds": round(time.monotonic() - start, 1)}

    def _examined(self, names: Sequence[str], known: Cells, overlay: Path) -> tuple[Cells, Cells]:
        """Cells with the overlay; and once more, those of the micrographs that differ."""
        order, out = self.folder / "order.json", self.folder / "cells.jsonl"
        mine = {cell: line for cell, line in known.items() if micrograph_of(cell) in set(names)}
        order.write_text(json.dumps({"names": names, "known": mine, "workers": self.workers, "enough": ENOUGH}))
        out.unlink(missing_ok=True)
        env = revert.with_overlay(overlay, os.environ)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env["PYTHONPATH"], str(paths.PACKAGE.parent)]))
        words = [sys.executable, "-m", "conformance.reverts.examined", str(order), str(out)]
        try:
            done = subprocess.run(
                words, env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"its micrographs take longer than {LIMIT:.0f} s") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise UsageError(f"the suite does not run: {(lines or ['no word'])[-1][:300]}")
        said: tuple[Cells, Cells] = ({}, {})
        for line in out.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            said[one["again"]].update(one["cells"])
        return said


def facts_moved(plain: Cells, reverted: Cells) -> list[str]:
    """What else `conformance diff` names between the two: what is lost, and more work."""
    pairs = (
        ("plain", {cell: plain[cell] | {"texts": {}} for cell in reverted if cell in plain}),
        ("reverted", reverted),
    )
    defaults: dict[str, Any] = {"reason": "", "findings": [], "observation": {}, "texts": {}, "seconds": 0.0}
    old, new = (
        Loaded(Path(name), {}, {cell: defaults | line for cell, line in cells.items()}, []) for name, cells in pairs
    )
    before, after, _ = sides(old, new)
    causes = compare(before, after).causes
    return [f"{cause.stage}: {cause.rank}: {cause.headline}"[:200] for cause in causes if cause.rank in (LOST, MORE)]


def told(differing: Mapping[str, str], bug: Bug) -> dict[str, Any]:
    """The bug's stage is that at which most micrographs differ first."""
    if not differing:
        return {"shown": False}
    first: dict[str, str] = {}
    for cell in differing:  # the earliest stage first
        first.setdefault(micrograph_of(cell), cell)
    stage = Counter(cell.split("/")[0] for cell in first.values()).most_common(1)[0][0]
    cell = next(cell for cell in first.values() if cell.startswith(f"{stage}/"))
    return {
        "shown": True,
        "stage": stage,
        "kind": differing[cell],
        "micrograph": micrograph_of(cell),
        "right": expected.answer(stage, bug.changed),
        "showing": [f"{cell}: {how}" for cell, how in differing.items()][:40],
    }
