"""What the answers to mutants come to, by the stage whose file was changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from conformance.mutants.trial import Answer
from conformance.stage import STAGES


def table(answers: Sequence[Answer]) -> Table:
    """One row a stage. `quietly wrong`: mutants with which every micrograph that was asked still compiled and ran, or that were found by
    more than an error; only these ask for a check."""
    made = Table(
        "changed in",
        "mutants",
        "ended",
        "contract",
        "baseline",
        "survived",
        "detected",
        "quiet detected",
        "right stage",
        "or near",
    )
    mutants = [answer for answer in answers if answer.seeded and not answer.unavailable]
    for stage in [*(stage.value for stage in STAGES), ""]:
        some = [answer for answer in mutants if stage in ("", answer.seeded)]
        if some:
            made.add_row(stage or "all", *_row(some))
    controls = [answer for answer in answers if not answer.seeded]
    alarms = [answer for answer in controls if answer.detected]
    if controls:
        made.caption = (
            f"nothing changed: {len(alarms)} alarms in {sum(answer.asked for answer in controls)} micrographs"
        )
    return made


def _row(some: Sequence[Answer]) -> list[str]:
    detected = [answer for answer in some if answer.detected]
    quiet = [answer for answer in some if not answer.ended]
    by = {how: sum(answer.by == how and not answer.ended for answer in detected) for how in ("contract", "baseline")}
    return [
        str(len(some)),
        str(sum(answer.ended for answer in some)),
        str(by["contract"]),
        str(by["baseline"]),
        str(len(some) - len(detected)),
        _share(len(detected), len(some)),
        _share(sum(by.values()), len(quiet)),
        _share(sum(answer.right_stage() for answer in detected), len(detected)),
        _share(sum(answer.near_stage() for answer in detected), len(detected)),
    ]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
