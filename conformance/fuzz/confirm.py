"""Run one example in this process, watched at every stage, and write down what is wrong: `python -m conformance.fuzz.confirm`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from conformance import backends, plugins
from conformance.backends.base import Case
from conformance.examine import Examination
from conformance.fuzz import guard_search
from conformance.fuzz.example import Example, read
from conformance.stage import STAGES, Stage
from conformance.target import Target


def findings(example: Example, backend: str, target: str) -> list[dict[str, Any]]:
    """What an examination finds in these calls, made one after the other on one compile."""
    if example.about != "answers":
        return guard_search.replayed(example, backends.get(backend))
    micrograph = example.as_micrograph()
    found = backends.get(backend)
    stages = [stage for stage in STAGES if stage is not Stage.CACHE]
    examination = Calls(Case(micrograph, Target.parse(target)), found, stages)
    examination.count = len(example.calls)
    trace = examination.trace()
    return [
        {"stage": stage.value, **finding.to_json()}
        for stage in STAGES
        if stage in trace.observations
        for finding in trace[stage].findings
    ]


class Calls(Examination):
    """An examination that makes the calls of an example in their order, however many."""

    count = 1

    def _runtime(self, compiled: Any, first: Any, ref: Any) -> None:
        if self.differs(compiled, 0, first, ref, "call 1"):
            return
        for seed in range(1, self.count):
            outcome = self.call(compiled, seed)
            if self.differs(compiled, seed, outcome, self.reference(seed), f"call {seed + 1}"):
                return


def main(arguments: list[str]) -> None:
    file, backend, target, answer = arguments
    plugins.load_plugins()
    said = {"findings": findings(read(Path(file)), backend, target)}
    Path(answer).write_text(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1:])
