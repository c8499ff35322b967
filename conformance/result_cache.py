"""Traces that earlier runs measured, for as long as nothing changed that they depend on.

What is kept is what was *measured*; it is judged anew every time. So a changed expectation or baseline runs nothing again, and a changed
micrograph runs that one alone. Traces measured under a plugin are never kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from conformance import environment, paths
from conformance.micrograph import Micrograph
from conformance.plan import Plan, PlannedCase
from conformance.trace import Trace
from conformance.verdict import Kind

MOST = 8  # environments remembered


class TraceCache:
    def __init__(self, plan: Plan) -> None:
        hashed = hashlib.sha256(f"{environment.fingerprint()} {plan.threads}".encode())
        root = paths.cache_folder("traces")
        self.folder = root / hashed.hexdigest()[:16]
        self.folder.mkdir(exist_ok=True, mode=0o700)
        os.utime(self.folder)
        self.times = root / "seconds.txt"
        _forget_old(root)

    def _file(self, case: PlannedCase, micrograph: type[Micrograph]) -> Path:
        key = hashlib.sha256(f"{case} {micrograph.digest()}".encode()).hexdigest()[:24]
        return self.folder / f"{key}.json"

    def get(self, case: PlannedCase, micrograph: type[Micrograph]) -> Trace | None:
        """The trace of a case, if all stages that are asked for were measured."""
        try:
            trace = Trace.from_json(json.loads(self._file(case, micrograph).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return trace if {*case.stages} <= {*trace.stages} else None

    def put(self, case: PlannedCase, micrograph: type[Micrograph], trace: Trace) -> None:
        """Keep a trace; one with a crash or a timeout is measured again next time. On a full disk none is kept."""
        seen = trace.observations.values()
        with suppress(OSError), self.times.open("a", encoding="utf-8") as out:
            out.write(f"{case} {sum(one.seconds for one in seen):.3f}\n")
        if any(f.kind in (Kind.CRASH, Kind.TIMEOUT) for one in seen for f in one.findings):
            return
        unfinished = self.folder / f"{os.getpid()}.unfinished"
        try:
            with unfinished.open("w", encoding="utf-8", errors="surrogatepass") as out:
                json.dump(trace.to_json(), out, default=str)
            os.replace(unfinished, self._file(case, micrograph))
        except OSError:
            unfinished.unlink(missing_ok=True)

    def seconds(self) -> dict[str, float]:
        """How long each case took when it was last measured, in this environment or another one."""
        try:
            lines = self.times.read_text("utf-8").splitlines()
        except OSError:
            return {}
        found: dict[str, float] = {}
        for line in lines:
            case, _, number = line.rpartition(" ")
            try:
                found[case] = float(number)
            except ValueError:
                continue
        if len(lines) > 8 * len(found) + 1000:
            with suppress(OSError):
                self.times.write_text("".join(f"{case} {number:.3f}\n" for case, number in found.items()), "utf-8")
        return found


def _forget_old(root: Path) -> None:
    folders = sorted((f for f in root.iterdir() if f.is_dir()), key=lambda f: f.stat().st_mtime)
    for old in folders[:-MOST]:
        shutil.rmtree(old, ignore_errors=True)
