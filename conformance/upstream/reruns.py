"""Failed tests, run again: as they are, then with ever more of the compiler, until each fails in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.upstream import rungs
from conformance.upstream.failure import alike
from conformance.upstream.outcome import FAILED, Answer, Outcome, died
from conformance.upstream.parts import stage_of

if TYPE_CHECKING:
    from conformance.upstream.runner import Runner


class Reruns:
    """The failed tests of one file; each gets its answer."""

    def __init__(self, runner: Runner, file: str, slot: Path, failed: list[Outcome]) -> None:
        self.runner, self.file, self.slot = runner, file, slot
        *self.ladder, self.full = rungs.LADDERS[runner.map.suite.ladder]
        self.open = {outcome.test: outcome for outcome in failed}
        self.lines = {outcome.test: outcome.line for outcome in failed}  # the failure to look for
        self.tried: dict[str, dict[str, str]] = {outcome.test: {} for outcome in failed}
        self.direct: dict[str, str] = {}  # tests that enter no layer: the stage of the part that they call themselves

    def run(self) -> None:
        self._at(self.full, settles="passes")
        for test, stage in self.direct.items():
            tried = self.tried[test]
            self.open.pop(test).answer = Answer("", stage, tried, tried[self.full.name], direct=True)
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
        child = self.runner.child([self.file], self.slot, rung)
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
                if rung is self.full and word.startswith("fails") and self._enters_nothing(event):
                    self.direct[event["test"]] = stage_of(
                        event.get("frames", ()), self.runner.map.suite.ladder, self.file
                    )
                yield (
                    event["test"],
                    word + (f" (not probed, gone: {', '.join(event['gone'])})" if event["gone"] else ""),
                )
            elif running:
                yield running, self._word(rung, died(running, event), {})
        if refused:
            for test in asked:
                yield test, f"not tried: {refused}"

    def _enters_nothing(self, event: Mapping[str, Any]) -> bool:
        """Did the test enter no layer of the compiler, with every layer probed?"""
        return bool(self.full.layers) and not event["layers"] and not event["gone"]

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
