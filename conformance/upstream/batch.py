"""Test files that share a process: run to the end, in a new process after each crash or hang."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.upstream.failure import Failure, judge, normalized
from conformance.upstream.outcome import COLLECTION, FAILED, Outcome, died
from conformance.upstream.process import Child
from conformance.upstream.reruns import Reruns

if TYPE_CHECKING:
    from conformance.upstream.runner import Runner

Report = Callable[[Outcome], None]


class Batch:
    """One or several files, and the tests of them that need not be run."""

    def __init__(self, runner: Runner, files: list[str], done: set[str], slot: Path) -> None:
        self.runner, self.files, self.done, self.slot = runner, files, set(done), slot
        self.collected: list[str] | None = None  # what is selected, of the last process
        self.failed: list[Outcome] = []
        self.collections: list[Outcome] = []

    def run(self, report: Report) -> None:
        """Report each test as it ends, those that failed after their reruns. A file's collection comes last: it says
        that the whole file was run."""
        self.runner.clear_graph_caches(self.slot)
        while self._process(report):
            pass
        for file in self.files:
            mine = [outcome for outcome in self.failed if outcome.file == file]
            if mine:
                Reruns(self.runner, file, self.slot, mine).run()
            for outcome in mine:
                report(outcome)
        for outcome in self.collections:
            report(outcome)

    def _ended(self, outcome: Outcome, report: Report) -> None:
        self.done.add(outcome.test)
        if outcome.test.endswith(COLLECTION):
            self.collections.append(outcome)
        elif outcome.outcome in FAILED and self.runner.worth_reruns(outcome):
            self.failed.append(outcome)
        else:
            report(outcome)

    def _process(self, report: Report) -> bool:
        """One process. True when it died or hung with tests left, so that another one is worth it."""
        child = self.runner.child(self.files, self.slot)
        running, before, event = "", len(self.done), {}
        for event in child.events():
            if event["event"] == "collected":
                child.select(self._selection(event, report))
            elif event["event"] == "start":
                running = event["test"]
            elif event["event"] == "end":
                running = ""
                self._ended(self.runner.outcome(event), report)
            elif running:
                self._ended(died(running, event), report)
            elif self.collected is None:
                self._nothing_collected(event, child, report)
        left = [test for test in self.collected or () if test not in self.done]
        if left and len(self.done) == before:  # no progress: a further process would not make any, either
            how = f"the process {event['how']} before this test"
            for test in left:
                self._ended(Outcome(test, "crashed", how, failure=Failure("crash", normalized(how))), report)
            return False
        return bool(left)

    def _selection(self, event: dict[str, Any], report: Report) -> list[str]:
        """The tests to run. Those that need what is not here end at once."""
        first = self.collected is None
        wanted = [test for test in event["tests"] if self.runner.selected(test)]
        self.collected = [test for test in wanted if test not in self.done]
        for test in self.collected:
            if reason := self.runner.refusal(test, event["guards"].get(test.partition("::")[0], "")):
                self._ended(Outcome(test, "unavailable", reason), report)
        for file in self.files if first else ():
            if f"{file}::{COLLECTION}" not in self.done:
                self._ended(self._collection(file, event), report)
        return [test for test in self.collected if test not in self.done]

    def _collection(self, file: str, event: dict[str, Any]) -> Outcome:
        name = f"{file}::{COLLECTION}"
        facts = {"selection": self.runner.options.selection}
        error = next((error for error in event["errors"] if _concerns(error["file"], file)), None)
        count = sum(test.startswith(f"{file}::") for test in event["tests"])
        if error is None and not count:
            return Outcome(
                name, "unavailable", event["guards"].get(file) or "the file makes no tests here", facts=facts
            )
        if error is None:
            return Outcome(name, "passed", f"{count} tests", facts={"tests": count, **facts})
        if error["outcome"] == "skipped":
            return Outcome(name, "skipped", error["line"], facts=facts)
        failure = judge(error, self.runner.map.missing, self.runner.same_version)
        return Outcome(name, "failed", failure.line, failure=failure, facts=facts)

    def _nothing_collected(self, event: dict[str, Any], child: Child, report: Report) -> None:
        """The process ended before it had collected. With several files, run each alone to see which of them it was."""
        if len(self.files) > 1:
            for file in self.files:
                alone = Batch(self.runner, [file], self.done, self.slot)
                alone.run(report)
                self.done |= alone.done
            self.collected = []
            return
        said = [line for line in child.log().splitlines() if line.strip()]
        line = normalized(f"{event['how']}: {said[-1] if said else ''}")
        outcome = died(f"{self.files[0]}::{COLLECTION}", {**event, "how": line})
        failure = judge({"line": line, "message": line}, self.runner.map.missing, self.runner.same_version)
        if failure.cause == "missing":
            outcome.failure = failure
        self._ended(outcome, report)


def _concerns(place: str, file: str) -> bool:
    """Does a collection error of this place concern the file? One of a folder does: a conftest that does not import."""
    return place in ("", ".", file) or file.startswith(f"{place}/")
