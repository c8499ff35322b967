"""Runs test files: a process a file, a new one after a crash or a hang, and again under the rungs what failed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from conformance.upstream import rungs
from conformance.upstream.checkout import Checkout
from conformance.upstream.failure import Failure, alike, judge, normalized
from conformance.upstream.interpreter import Interpreter
from conformance.upstream.process import Child, Job
from conformance.upstream.stage_map import Entry, StageMap

COLLECTION = "(collection)"
GRAPH_CACHES = ("fxgraph", "aotautograd", "dynamo")  # folders of Inductor's cache that hold whole answers
FAILED = ("failed", "crashed", "hung")


@dataclass
class Outcome:
    """What became of one test, or of a file's collection."""

    test: str
    outcome: (
        str  # passed stopped skipped xfailed xpassed failed crashed hung, or unavailable: upstream or the map says so
    )
    line: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    answer: Answer | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What the rungs say: the lowest at which the test fails in the same way, and what happened at each that was tried."""

    rung: str  # empty where none is
    stage: str
    tried: dict[str, str]
    alone: str  # what the test does when it is run again as it is

    @property
    def said(self) -> str:
        if self.rung:
            return f"fails from {self.stage} on" if self.stage else "fails without the compiler"
        return "passes when it is run alone" if self.alone.startswith("passes") else "no rung tells where"


@dataclass(frozen=True)
class Options:
    stages: frozenset[str] = frozenset()  # empty: all
    keyword: str = ""
    timeout: float = 120.0
    collecting: float = 600.0
    slow: bool = False
    rungs: bool = True

    @property
    def selection(self) -> str:
        """In one line what a file was asked for; equal lines mean equal tests."""
        return f"stages={','.join(sorted(self.stages)) or 'all'} keyword={self.keyword!r} slow={self.slow}"


class FileRun:
    """All tests of one file that the options select."""

    def __init__(self, runner: Runner, file: str, done: set[str], slot: Path) -> None:
        self.runner, self.file, self.done, self.slot = runner, file, set(done), slot
        self.collected: list[str] | None = None

    def run(self, report: Callable[[Outcome], None]) -> None:
        """Report each test as it ends; those that failed after the rungs; the collection last, so that it stands for the file."""
        self.runner.clear_graph_caches(self.slot)
        failed: list[Outcome] = []
        collection: list[Outcome] = []

        def ended(outcome: Outcome) -> None:
            self.done.add(outcome.test)
            if outcome.test.endswith(COLLECTION):
                collection.append(outcome)
            elif outcome.outcome in FAILED and self.runner.worth_rungs(outcome):
                failed.append(outcome)
            else:
                report(outcome)

        while self._once(ended):
            pass
        if failed:
            Rungs(self.runner, self.file, self.slot, failed).run()
        for outcome in failed + collection:
            report(outcome)

    def _once(self, ended: Callable[[Outcome], None]) -> bool:
        """One process. True when it died or hung with tests left, so that another one is worth it."""
        child = self.runner.child(self.file, self.slot)
        running, before = "", len(self.done)
        for event in child.events():
            if event["event"] == "collected":
                child.select(self._collected(event, ended))
            elif event["event"] == "start":
                running = event["test"]
            elif event["event"] == "end":
                running = ""
                ended(self.runner.outcome(event))
            elif running:
                ended(_died(running, event))
            elif self.collected is None:
                ended(self._no_collection(event, child))
        left = [test for test in self.collected or () if test not in self.done]
        if left and len(self.done) == before:  # no progress: a further process would not make any, either
            for test in left:
                ended(
                    Outcome(
                        test,
                        "crashed",
                        f"the process {event['how']} before this test",
                        failure=Failure("crash", event["how"]),
                    )
                )
            return False
        return bool(left)

    def _collected(self, event: dict[str, Any], ended: Callable[[Outcome], None]) -> list[str]:
        """The tests to run. Those that need what is not here end at once."""
        first = self.collected is None
        wanted = [test for test in event["tests"] if self.runner.selected(test)]
        self.collected = [test for test in wanted if test not in self.done]
        for test in list(self.collected):
            if reason := self.runner.refusal(test, event["guard"]):
                ended(Outcome(test, "unavailable", reason))
        if first and f"{self.file}::{COLLECTION}" not in self.done:
            ended(self._collection(event))
        return [test for test in self.collected if test not in self.done]

    def _collection(self, event: dict[str, Any]) -> Outcome:
        name = f"{self.file}::{COLLECTION}"
        error = event["errors"][0] if event["errors"] else None
        facts = {"selection": self.runner.options.selection}
        if error is None and not event["tests"]:
            return Outcome(name, "unavailable", event["guard"] or "the file makes no tests here", facts=facts)
        if error is None:
            return Outcome(
                name, "passed", f"{len(event['tests'])} tests", facts={"tests": len(event["tests"]), **facts}
            )
        if error["outcome"] == "skipped":
            return Outcome(name, "skipped", error["line"], facts=facts)
        failure = judge(error, self.runner.map.missing, self.runner.same_version)
        return Outcome(name, "failed", failure.line, failure=failure, facts=facts)

    def _no_collection(self, event: dict[str, Any], child: Child) -> Outcome:
        """The process ended before it had collected anything."""
        said = [line for line in child.log().splitlines() if line.strip()]
        line = normalized(f"{event['how']}: {said[-1] if said else ''}")
        failure = judge({"line": line, "message": line}, self.runner.map.missing, self.runner.same_version)
        failure = failure if failure.cause == "missing" else Failure("timeout" if event["hung"] else "crash", line)
        return Outcome(f"{self.file}::{COLLECTION}", "hung" if event["hung"] else "crashed", line, failure=failure)


def _died(test: str, event: dict[str, Any]) -> Outcome:
    outcome, cause = ("hung", "timeout") if event["hung"] else ("crashed", "crash")
    return Outcome(test, outcome, event["how"], failure=Failure(cause, normalized(event["how"])))


class Rungs:
    """Runs the failed tests of a file again: as they are, then with ever more of the compiler, until each fails in the same way."""

    def __init__(self, runner: Runner, file: str, slot: Path, failed: list[Outcome]) -> None:
        self.runner, self.file, self.slot = runner, file, slot
        *self.ladder, self.full = rungs.LADDERS[runner.map.suite.ladder]
        self.open = {outcome.test: outcome for outcome in failed}
        self.lines = {outcome.test: outcome.line for outcome in failed}  # the failure to look for
        self.tried: dict[str, dict[str, str]] = {outcome.test: {} for outcome in failed}

    def run(self) -> None:
        self._at(self.full, settles="passes")
        for rung in self.ladder:
            self._at(rung, settles="fails alike")
        for test in list(self.open):  # what fails at no shorter rung
            word = self.tried[test].get(self.full.name, "")
            self._settle(test, self.full if word.startswith("fails") else None)

    def _at(self, rung: rungs.Rung, settles: str) -> None:
        """Run all open tests at one rung; those that answer with `settles` are settled."""
        left = list(self.open)
        while left:
            before = len(left)
            for test, word in self._process(rung, left):
                left.remove(test)
                self.tried[test][rung.name] = word
                if word.startswith(settles):
                    self._settle(test, None if rung is self.full else rung)
            if len(left) == before:
                break

    def _settle(self, test: str, rung: rungs.Rung | None) -> None:
        tried = self.tried[test]
        name, stage = (rung.name, rung.stage) if rung else ("", "")
        self.open.pop(test).answer = Answer(name, stage, tried, tried.get(self.full.name, ""))

    def _process(self, rung: rungs.Rung, tests: list[str]) -> Iterable[tuple[str, str]]:
        """One process at one rung: each test that ended, with what became of it in a word."""
        self.runner.clear_graph_caches(self.slot)
        child = self.runner.child(self.file, self.slot, rung)
        running, refused, asked = "", "", list(tests)
        for event in child.events():
            if event["event"] == "collected":
                refused = event["rung"]
                child.select([] if refused else asked)
            elif event["event"] == "start":
                running = event["test"]
            elif event["event"] == "end":
                running = ""
                word = self._word(rung, self.runner.outcome(event), event["layers"])
                yield (
                    event["test"],
                    word + (f" (not probed, gone: {', '.join(event['gone'])})" if event["gone"] else ""),
                )
            elif running:
                yield running, self._word(rung, _died(running, event), {})
        if refused:
            for test in asked:
                yield test, f"not tried: {refused}"

    def _word(self, rung: rungs.Rung, outcome: Outcome, layers: dict[str, int]) -> str:
        above = [layer for layer in layers if layer not in rung.layers]
        if above:
            return f"not reached: entered {', '.join(above)}"
        if outcome.outcome not in FAILED:
            return "passes" if outcome.outcome == "passed" else outcome.outcome
        same = alike(outcome.line, self.lines[outcome.test])
        if rung is self.full:  # from here on the failure to look for is the one that the test has when it is run alone
            self.lines[outcome.test] = outcome.line
        return "fails alike" if same else "fails otherwise"


class Runner:
    """Runs files of a checkout in an interpreter, several at once if asked."""

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
        package = stage_map.suite.package
        installed = python.packages.get(package, "").partition("+")[0] if package else checkout.release
        self.same_version = not checkout.release or installed == checkout.release

    def run(
        self, files: list[str], done: dict[str, set[str]], report: Callable[[str, Outcome], None], workers: int = 1
    ) -> None:
        """Run every file; `done` has the tests of each that need not be run again. `report` is called from worker threads."""
        slots: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            slots.put(self.folder / f"slot{number}")

        def one(file: str) -> None:
            slot = slots.get()
            try:
                FileRun(self, file, done.get(file, set()), slot).run(lambda outcome: report(file, outcome))
            finally:
                slots.put(slot)

        with ThreadPoolExecutor(workers) as pool:
            for finished in [pool.submit(one, file) for file in files]:
                finished.result()

    def child(self, file: str, slot: Path, rung: rungs.Rung | None = None) -> Child:
        suite = self.map.suite
        job = Job(
            self.python.path,
            self.checkout.root,
            file,
            suite.path,
            (*suite.arguments, *(() if suite.conftest else ("--noconftest",))),
            bootstrap=suite.bootstrap,
            rung=rung,
            layers=rungs.layers_of(rungs.LADDERS[suite.ladder]) if rung else (),
            keyword=self.options.keyword,
            env={
                "PYTHONPYCACHEPREFIX": str(self.folder.parent / "pycache"),
                **suite.env,
                **(rung.environ if rung else {}),
            },
        )
        return Child(job, slot, self.options.timeout, self.options.collecting)

    def clear_graph_caches(self, slot: Path) -> None:
        """Every file, and every rung, starts without cached graphs; compiled C++ is kept, since its key is its source."""
        for name in GRAPH_CACHES:
            shutil.rmtree(slot / "inductor" / name, ignore_errors=True)

    def selected(self, test: str) -> bool:
        entry = self.map.find(test)
        return entry is not None and (not self.options.stages or entry.stage.value in self.options.stages)

    def refusal(self, test: str, guard: str | None) -> str:
        """Why a test is not run here; empty if it is."""
        entry = self.map.find(test)
        return (entry and _needs(entry, self.python.gpus, self.options.slow)) or guard or ""

    def outcome(self, event: dict[str, Any]) -> Outcome:
        """What an `end` event says, with a failure judged."""
        outcome = Outcome(
            event["test"], event["outcome"], normalized(event["line"]), event["seconds"], facts=event.get("facts", {})
        )
        if event["outcome"] == "failed":
            outcome.failure = judge(event, self.map.missing, self.same_version)
        return outcome

    def worth_rungs(self, outcome: Outcome) -> bool:
        """A missing package or a name that is gone says nothing about a stage; a failure that is expected is known already."""
        told = outcome.failure is None or outcome.failure.cause in ("missing", "private_name", "public_name")
        return self.options.rungs and self.map.suite.ladder in rungs.LADDERS and not told and not self.expected(outcome)


def _needs(entry: Entry, gpus: int, slow: bool) -> str:
    if "multi-gpu" in entry.needs and gpus < 2:
        return f"needs several GPUs; this machine has {gpus or 'none'}"
    if "gpu" in entry.needs and not gpus:
        return "needs a GPU; this machine has none"
    if "slow" in entry.needs and not slow:
        return "slow: run it with --slow"
    return ""
