"""Runs files of a checkout in an interpreter, several batches at once if asked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from typing import Any

from conformance.upstream import rungs
from conformance.upstream.batch import Batch
from conformance.upstream.checkout import Checkout
from conformance.upstream.failure import judge, normalized
from conformance.upstream.interpreter import Interpreter
from conformance.upstream.launch import Launcher, NewInterpreters, Server
from conformance.upstream.outcome import Outcome
from conformance.upstream.process import Child, Job, environment
from conformance.upstream.stage_map import Entry, StageMap

GRAPH_CACHES = ("fxgraph", "aotautograd", "dynamo")  # folders of Inductor's cache that hold whole answers


@dataclass(frozen=True)
class Options:
    """What a person asked for."""

    stages: frozenset[str] = frozenset()  # empty: all
    keyword: str = ""
    timeout: float = 120.0  # seconds for one test
    collecting: float = 900.0  # seconds until the tests are collected
    slow: bool = False
    rungs: bool = True

    @property
    def selection(self) -> str:
        """In one line what a file was asked for; equal lines mean equal tests."""
        return f"stages={','.join(sorted(self.stages)) or 'all'} keyword={self.keyword!r} slow={self.slow}"


class Runner:
    """A checkout, an interpreter, and what was asked for."""

    def __init__(
        self,
        stage_map: StageMap,
        checkout: Checkout,
        python: Interpreter,
        options: Options,
        folder: Path,
        expected: Callable[[Outcome], bool] = lambda outcome: False,
    ) -> None:
        self.map, self.checkout, self.python, self.options, self.folder = stage_map, checkout, python, options, folder
        self.expected = expected
        self.launchers: dict[Path, Launcher] = {}
        package = stage_map.suite.package
        installed = python.packages.get(package, "").partition("+")[0] if package else checkout.release
        self.same_version = not checkout.release or installed == checkout.release

    def run(
        self, files: list[str], done: dict[str, set[str]], report: Callable[[Outcome], None], workers: int = 1
    ) -> None:
        """Run every file; `done` has the tests of each that are not run again. Worker threads call `report`."""
        slots: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            slots.put(self.folder / f"slot{number}")

        def one(batch: list[str]) -> None:
            slot = slots.get()
            try:
                known = {test for file in batch for test in done.get(file, ())}
                Batch(self, batch, known, slot).run(report)
            finally:
                slots.put(slot)

        try:
            with ThreadPoolExecutor(workers) as pool:
                for finished in [pool.submit(one, batch) for batch in self.batches(files)]:
                    finished.result()
        finally:
            for launcher in self.launchers.values():
                launcher.close()
            self.launchers.clear()

    def batches(self, files: list[str]) -> list[list[str]]:
        """Files that share a process: neighbours of one folder, as many as the suite allows."""
        most = self.map.suite.batch
        folders = [list(group) for _, group in groupby(files, key=lambda file: PurePosixPath(file).parent)]
        return [folder[start : start + most] for folder in folders for start in range(0, len(folder), most)]

    def child(self, files: list[str], slot: Path, rung: rungs.Rung | None = None) -> Child:
        suite = self.map.suite
        pycache = os.environ.get("PYTHONPYCACHEPREFIX") or str(self.folder.parent / "pycache")  # not in the checkout
        env = {"PYTHONPYCACHEPREFIX": pycache, **suite.env}
        job = Job(
            self.python.path,
            self.checkout.root,
            tuple(files),
            suite.path,
            (*suite.arguments, *(() if suite.conftest else ("--noconftest",))),
            bootstrap=suite.bootstrap,
            rung=rung,
            layers=rungs.layers_of(rungs.LADDERS[suite.ladder]) if rung else (),
            keyword=self.options.keyword,
            env={**env, **(rung.environ if rung else {})},
        )
        return Child(job, slot, self.options.timeout, self.options.collecting, self._launcher(job, slot))

    def _launcher(self, job: Job, slot: Path) -> Launcher:
        """Forks, where the suite says what to import beforehand. A slot has one, for its children share an
        environment."""
        if slot not in self.launchers:
            settings = {"preload": dict(self.map.suite.preload), "bootstrap": job.bootstrap, "root": str(job.root)}
            bare = replace(job, env={key: value for key, value in job.env.items() if key not in _of_rung(job)})
            self.launchers[slot] = (
                Server(job.python, settings, slot, environment(bare, slot))
                if self.map.suite.preload
                else NewInterpreters(job.python)
            )
        return self.launchers[slot]

    def clear_graph_caches(self, slot: Path) -> None:
        """A batch or a rung starts without cached graphs. Compiled C++ is kept: its key is its source."""
        for name in GRAPH_CACHES:
            shutil.rmtree(slot / "inductor" / name, ignore_errors=True)

    def selected(self, test: str) -> bool:
        entry = self.map.find(test)
        return entry is not None and (not self.options.stages or entry.stage.value in self.options.stages)

    def refusal(self, test: str, guard: str) -> str:
        """Why a test is not run here; empty if it is."""
        entry = self.map.find(test)
        return (entry and _needs(entry, self.python.gpus, self.options.slow)) or guard

    def outcome(self, event: dict[str, Any]) -> Outcome:
        """What an `end` event says, with a failure judged."""
        line, facts = normalized(event["line"]), event.get("facts", {})
        outcome = Outcome(event["test"], event["outcome"], line, event["seconds"], facts=facts)
        if event["outcome"] == "failed":
            outcome.failure = judge(event, self.map.missing, self.same_version)
        return outcome

    def worth_reruns(self, outcome: Outcome) -> bool:
        """Do the rungs have something to tell? Not of a missing package, a name that is gone, a failure that is
        expected."""
        told = outcome.failure is None or outcome.failure.cause in ("missing", "private_name", "public_name")
        wanted = self.options.rungs and self.map.suite.ladder in rungs.LADDERS
        return wanted and not told and not self.expected(outcome)


def _of_rung(job: Job) -> Mapping[str, str]:
    return job.rung.environ if job.rung else {}


def _needs(entry: Entry, gpus: int, slow: bool) -> str:
    if "multi-gpu" in entry.needs and gpus < 2:
        return f"needs several GPUs; this machine has {gpus or 'none'}"
    if "gpu" in entry.needs and not gpus:
        return "needs a GPU; this machine has none"
    if "slow" in entry.needs and not slow:
        return "slow: run it with --slow"
    return ""
