"""What the record says, in numbers: of N bugs that are proven to be there, how many does the library show, and where?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from conformance.reverts import expected
from conformance.reverts.bug import CANDIDATE, LEFT_OUT, NAMED, PROVEN, Bug

HALVES = ("even", "odd")


def lines(bugs: Iterable[Bug], missed: bool = False) -> list[str]:
    """Markdown."""
    known = list(bugs)
    tried = [bug for bug in known if bug.outcome not in (LEFT_OUT, NAMED, CANDIDATE)]
    said = [
        f"{len(known)} commits; {sum(bug.outcome == NAMED for bug in known)} named by the library, {len(tried)} candidates tried:",
        "",
    ]
    said += [f"- {number} {outcome}" for outcome, number in Counter(bug.outcome for bug in tried).most_common()]
    said += [
        "",
        "| half | proven and scored | shown | at the right stage | near | counts alone |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    scored = [bug for bug in known if bug.outcome == PROVEN and bug.scored]
    for half in HALVES:
        said.append(_row(half, [bug for bug in scored if bug.half == half]))
    said += [
        _row("both", scored),
        "",
        "| where the bug is | proven and scored | shown | right |",
        "| --- | ---: | ---: | ---: |",
    ]
    for stage in dict.fromkeys(_where(bug) for bug in sorted(scored, key=_where)):
        here = [bug for bug in scored if _where(bug) == stage]
        said.append(
            f"| {stage} | {len(here)} | {sum(b.shown for b in here)} | {sum(b.right == 'right' for b in here)} |"
        )
    if missed:
        said += ["", "Missed, of the half that may be read:", ""]
        said += [
            f"- {b.commit[:12]} {b.title} ({', '.join(b.changed)})" for b in scored if b.half == "even" and not b.shown
        ]
    return said


def _row(half: str, scored: list[Bug]) -> str:
    shown = [bug for bug in scored if bug.shown]
    right, near = (sum(bug.right == word for bug in shown) for word in ("right", "near"))
    moved = sum(bool(bug.moved) for bug in scored if not bug.shown)
    share = f" ({100 * len(shown) / len(scored):.0f} %)" if scored else ""
    return f"| {half} | {len(scored)} | {len(shown)}{share} | {right} | {near} | {moved} |"


def _where(bug: Bug) -> str:
    return ", ".join(expected.stages(bug.changed)) or "no stage"
