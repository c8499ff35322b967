"""Does the library show the bug? The same micrographs without and with the overlay, compared cell by cell."""

from __future__ import annotations

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
from conformance.record import Run, read
from conformance.report.diff import compare, sides
from conformance.report.facts import CODE, LOST, MORE
from conformance.report.load import Loaded
from conformance.reverts import expected, revert
from conformance.reverts.bug import Bug
from conformance.reverts.proof import copies
from conformance.stage import STAGES
from conformance.verdict import Verdict

Cells = dict[str, dict[str, Any]]

PLACE = ("inductor", "cpu")
FIRST = 20  # micrographs, and the others only where these do not show the bug
CONFIRMED = 4  # micrographs that are run once more, without and with the overlay
LIMIT = 120.0  # seconds for a case
WRONG = {str(v) for v in Verdict if v.unexpected and v is not Verdict.XPASS} | {
    str(Verdict.XFAIL),
    str(Verdict.UNSUPPORTED),
}


class Scorer:
    """Runs micrographs. What was measured without an overlay is kept, and measured once."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.folder, self.workers = folder, workers
        self.installed = revert.installed_root()
        (folder / "plain").mkdir(parents=True, exist_ok=True)
        (folder / "reverted").mkdir(exist_ok=True)
        self.plain: Cells = {}
        for record in sorted((folder / "plain").glob("*.jsonl")):
            self.plain |= read(record).cells

    def score(self, bug: Bug, checkout: Path, names: Sequence[str]) -> dict[str, Any]:
        """What is to be kept of the bug: a few micrographs, then more where they do not show it."""
        start = time.monotonic()
        overlay = revert.state("overlays") / bug.commit[:12]
        if refusal := revert.revert(checkout, bug.commit, bug.files, self.installed, overlay):
            raise UsageError(f"{bug.commit[:12]}: {refusal}")
        cells: Cells = {}
        differing: dict[str, str] = {}
        moved: list[str] = []
        for number, part in enumerate([names[:FIRST], names[FIRST:]]):
            if not part or differing:
                continue
            run = self._run(part, overlay, self.folder / "reverted" / f"{bug.commit[:12]}-{number}.jsonl")
            self._plainly(
                sorted({_micrograph(cell) for cell, line in run.cells.items() if not _same(self.plain.get(cell), line)})
            )
            cells |= run.cells
            if differing := differences(self.plain, run.cells):
                differing = self._confirmed(differing, overlay, bug)
            moved += facts_moved(
                {cell: self.plain[cell] for cell in run.cells if cell in self.plain}, run.cells, run.header
            )
        seconds = round(time.monotonic() - start, 1)
        return told(differing, bug) | {
            "ran": len({_micrograph(cell) for cell in cells}),
            "moved": moved[:20],
            "seconds": seconds,
        }

    def _plainly(self, names: Sequence[str]) -> None:
        if names:
            number = len(list((self.folder / "plain").glob("*.jsonl")))
            self.plain |= self._run(names, None, self.folder / "plain" / f"{number:04}.jsonl").cells

    def _confirmed(self, differing: dict[str, str], overlay: Path, bug: Bug) -> dict[str, str]:
        """Of the first micrographs: what differs once more, in new runs of both. A difference that comes and goes is none."""
        names = list(dict.fromkeys(_micrograph(cell) for cell in differing))[:CONFIRMED]
        again = self.folder / "again"
        plain = self._run(names, copies(bug.files, self.installed, self.folder / "copies"), again / "plain.jsonl").cells
        reverted = self._run(names, overlay, again / "reverted.jsonl").cells
        kept = differences(plain, reverted)
        return {cell: how for cell, how in differing.items() if kept.get(cell) == how}

    def _run(self, names: Sequence[str], overlay: Path | None, record: Path) -> Run:
        record.parent.mkdir(exist_ok=True)
        record.unlink(missing_ok=True)
        words = [
            sys.executable,
            "-m",
            "conformance.cli",
            "run",
            "-b",
            PLACE[0],
            "-t",
            PLACE[1],
            "--no-baseline",
            "--fresh",
        ]
        words += ["-n", str(self.workers), "--cell-timeout", str(LIMIT), "--allow-unavailable", "--record", str(record)]
        words += [word for name in names for word in ("-m", name)]
        env = revert.with_overlay(overlay, os.environ)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env["PYTHONPATH"], str(paths.PACKAGE.parent)]))
        done = subprocess.run(words, env=env, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode not in (0, 1):
            lines = done.stderr.decode(errors="replace").splitlines()
            said = [line for line in lines if line.startswith("conformance:")] or [
                line for line in lines if line.strip()
            ]
            raise UsageError(f"the suite does not run: {(said or ['no word'])[-1][:300]}")
        return read(record)


def differences(plain: Mapping[str, Mapping[str, Any]], reverted: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Cells that are wrong with the overlay and were right without it, or were wrong in another way; the earliest stage first."""
    found = {}
    for cell in sorted(reverted, key=lambda cell: (_stage(cell), cell)):
        before, after = plain.get(cell), reverted[cell]
        if before is None or not _same(before, after) or after["verdict"] not in WRONG:
            continue
        if how := _otherwise(before, after):
            found[cell] = how
    return found


def _same(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    """Of one text of the micrograph?"""
    return before is not None and before.get("micrograph") == after.get("micrograph")


def _otherwise(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """How a wrong cell differs from what it was; empty if it does not."""
    kinds, known = (
        {(f.get("kind", ""), f.get("check", "")) for f in line.get("findings", ())} for line in (after, before)
    )
    if before["verdict"] in WRONG and kinds <= known:
        return ""
    told = sorted(kind for kind, _ in (kinds - known or kinds)) or [after["verdict"]]
    return told[0]


def facts_moved(plain: Cells, reverted: Cells, header: dict[str, Any]) -> list[str]:
    """What else `conformance diff` names between the two: lost and more work, other code. Both have one header: they are of one suite
    and one version."""
    old, new = (Loaded(Path(name), header, cells, []) for name, cells in (("plain", plain), ("reverted", reverted)))
    before, after, _ = sides(old, new)
    causes = compare(before, after).causes
    return [
        f"{cause.stage}: {cause.rank}: {cause.headline}"[:200] for cause in causes if cause.rank in (LOST, MORE, CODE)
    ]


def told(differing: Mapping[str, str], bug: Bug) -> dict[str, Any]:
    """The bug's stage is that at which most micrographs differ first."""
    if not differing:
        return {"shown": False}
    first: dict[str, str] = {}
    for cell in differing:  # the earliest stage first
        first.setdefault(_micrograph(cell), cell)
    stage = Counter(cell.split("/")[0] for cell in first.values()).most_common(1)[0][0]
    cell = next(cell for cell in first.values() if cell.startswith(stage))
    return {
        "shown": True,
        "stage": stage,
        "kind": differing[cell],
        "micrograph": _micrograph(cell),
        "right": expected.answer(stage, bug.changed),
        "showing": [f"{cell}: {how}" for cell, how in differing.items()][:40],
    }


def _address(micrograph: str) -> str:
    return "/".join(("capture", *PLACE, micrograph))


def _micrograph(cell: str) -> str:
    return cell.split("/", 3)[3]


def _stage(cell: str) -> int:
    return next(stage.order for stage in STAGES if stage.value == cell.split("/")[0])
