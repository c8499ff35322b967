"""What `conformance selftest` found: kept as it goes, and written as a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.errors import UsageError
from conformance.line_store import LineStore
from conformance.seeded.fault import Fault
from conformance.seeded.selftest import Caught

DETECTED, LOCALIZED, NAMED = 0.95, 0.90, 0.80  # what the suite must reach


class Board(LineStore[Caught]):
    """Answers by fault, so that a run goes on where it was stopped, and another environment adds what this one does not have."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, Caught, lambda caught: caught.fault)

    def keep(self, caught: Caught) -> None:
        before = self.known.get(caught.fault)
        if caught.unavailable and before is not None and not before.unavailable:
            return  # seen in another environment
        super().keep(caught)

    def left(self, todo: Sequence[str]) -> list[str]:
        return [name for name in todo if name not in self.known or self.known[name].unavailable]


class Score:
    """The numbers of some faults and of the cases without one."""

    def __init__(self, caught: Sequence[Caught], faults: Mapping[str, Fault]) -> None:
        self.faults = faults
        self.asked = [c for c in caught if not c.clean and not c.unavailable]
        self.clean = [c for c in caught if c.clean and not c.unavailable]
        self.unavailable = [c for c in caught if c.unavailable and not c.clean]
        self.detected = sum(c.detected for c in self.asked)
        self.right = sum(c.right_stage(faults[c.fault]) for c in self.asked)
        self.kinds = sum(c.detected and c.right_kind(faults[c.fault]) for c in self.asked)
        self.alarms = [alarm for c in self.clean for alarm in c.alarms]

    @property
    def enough(self) -> bool:
        total = len(self.asked)
        return self.detected >= DETECTED * total and self.right >= LOCALIZED * total and not self.alarms

    def lines(self) -> list[str]:
        total = len(self.asked) or 1
        found, placed = f"{100 * self.detected / total:.0f} %", f"{100 * self.right / total:.0f} %"
        said = [
            f"detected {self.detected} of {len(self.asked)} ({found}), right stage {self.right} ({placed}), right kind {self.kinds}"
        ]
        if self.clean:
            seconds = sum(c.seconds for c in self.clean)
            said.append(
                f"without a fault: {len(self.alarms)} false alarms in {len(self.clean)} micrographs, {seconds:.0f} s"
            )
        return said


# ------------------------------------------------------------------------------------------------ docs


def write(path: Path, mark: str, table: str) -> None:
    """Put a table between the two marks of a Markdown file."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    text = path.read_text(encoding="utf-8") if path.exists() else f"# Seeded faults\n\n{begin}\n{end}\n"
    if begin not in text or end not in text:
        raise UsageError(f"{path} has no place for the table: put the lines {begin} and {end} where it belongs")
    made = f"{begin}\n{table}\n{end}"
    path.write_text(re.sub(f"{begin}.*?{end}", lambda _: made, text, flags=re.DOTALL), encoding="utf-8")


def detections(score: Score) -> str:
    groups: dict[str, list[Caught]] = {}
    for caught in [*score.asked, *score.clean]:
        groups.setdefault(_group(caught, score.faults), []).append(caught)
    rows = ["| compiler | faults | detected | right stage | right kind | false alarms | seconds |"]
    rows += ["| --- | --- | --- | --- | --- | --- | --- |"]
    rows += [_summary(name, Score(found, score.faults)) for name, found in groups.items()]
    if len(groups) > 1:
        rows.append(_summary("**all**", score))
    rows += ["", *(f"- false alarm: {alarm}" for alarm in score.alarms), *([""] if score.alarms else [])]
    rows += ["| fault | what the compiler does wrong | compiler | seeded in | found in | kind | by | s |"]
    rows += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
    rows += [_row(caught, score.faults[caught.fault]) for caught in _in_order(score.asked, score.faults)]
    return "\n".join(rows)


def _in_order(asked: Sequence[Caught], faults: Mapping[str, Fault]) -> list[Caught]:
    """As the library lists the faults: workers answer in any order."""
    order = list(faults)
    return sorted(asked, key=lambda caught: order.index(caught.fault))


def _group(caught: Caught, faults: Mapping[str, Fault]) -> str:
    from conformance.seeded.selftest import CLEAN

    backend, target = (
        caught.fault.removeprefix(CLEAN).split("/")[:2]
        if caught.clean
        else (faults[caught.fault].backend, faults[caught.fault].target)
    )
    version = caught.versions.get("torch_tensorrt" if backend == "torch_tensorrt" else "torch", "")
    return f"{backend} {target}, {'torch_tensorrt' if backend == 'torch_tensorrt' else 'torch'} {version.split('+')[0]}"


def _summary(name: str, score: Score) -> str:
    total = len(score.asked) or 1
    seconds = sum(c.seconds for c in [*score.asked, *score.clean])
    alarms = f"{len(score.alarms)} in {len(score.clean)} micrographs" if score.clean else "not run"
    return (
        f"| {name} | {len(score.asked)} | {score.detected} ({100 * score.detected / total:.0f} %) "
        f"| {score.right} ({100 * score.right / total:.0f} %) | {score.kinds} | {alarms} | {seconds:.0f} |"
    )


def _row(caught: Caught, fault: Fault) -> str:
    found = "not found ✗" if not caught.detected else caught.stage if caught.right_stage(fault) else f"{caught.stage} ✗"
    return (
        f"| {fault.name} | {fault.what} | {fault.backend} {fault.target} | {fault.stage.value} | {found} "
        f"| {caught.kind} | {caught.micrograph} | {caught.seconds:.0f} |"
    )


# -------------------------------------------------------------------------------------------- culprits


class Naming:
    """Does triage name the stage and, inside it, the culprit?"""

    def __init__(self, caught: Sequence[Caught], faults: Mapping[str, Fault]) -> None:
        self.faults = faults
        self.asked = [c for c in caught if not c.unavailable]
        self.right = sum(self.named(c) for c in self.asked)

    def named(self, caught: Caught) -> bool:
        fault = self.faults[caught.fault]
        return caught.right_stage(fault) and caught.right_culprit(fault)

    @property
    def enough(self) -> bool:
        return self.right >= NAMED * len(self.asked)

    def line(self) -> str:
        share = 100 * self.right / (len(self.asked) or 1)
        return f"stage and culprit named for {self.right} of {len(self.asked)} ({share:.0f} %), {sum(c.seconds for c in self.asked):.0f} s"

    def markdown(self) -> str:
        rows = [
            self.line(),
            "",
            "| fault | seeded in | found in | culprit | nodes | s |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for caught in _in_order(self.asked, self.faults):
            fault = self.faults[caught.fault]
            stage = caught.stage if caught.right_stage(fault) else f"{caught.stage or 'not found'} ✗"
            culprit = f"`{caught.culprit[:90]}`" + ("" if caught.right_culprit(fault) else " ✗")
            shrunk = " → ".join(map(str, caught.nodes)) or "–"
            rows.append(
                f"| {fault.name} | {fault.stage.value}, {fault.culprit} | {stage} | {culprit} | {shrunk} | {caught.seconds:.0f} |"
            )
        return "\n".join(rows)
