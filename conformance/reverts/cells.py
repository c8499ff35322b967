"""Cells without and with a bug, compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.processes import Death
from conformance.stage import STAGES
from conformance.verdict import Verdict

Cells = dict[str, dict[str, Any]]

PLACE = ("inductor", "cpu")
WRONG = {str(v) for v in Verdict if v.unexpected and v is not Verdict.XPASS} | {
    str(Verdict.XFAIL),
    str(Verdict.UNSUPPORTED),
}


def differences(plain: Mapping[str, Mapping[str, Any]], reverted: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Cells that are wrong with the overlay and were right without it, or were wrong in another way, and how; the earliest stage first."""
    found = {}
    for cell in sorted(reverted, key=lambda cell: (order(cell), cell)):
        before, after = plain.get(cell), reverted[cell]
        if before is None or after["verdict"] not in WRONG:
            continue
        if after.get("micrograph") and before.get("micrograph") != after["micrograph"]:
            continue  # its text is another one now
        if how := _otherwise(before, after):
            found[cell] = how
    return found


def _otherwise(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """How a wrong cell differs from what it was; empty if it does not."""
    kinds, known = (
        {(f.get("kind", ""), f.get("check", "")) for f in line.get("findings", ())} for line in (after, before)
    )
    if before["verdict"] in WRONG and kinds <= known:
        return ""
    return min((kind for kind, _ in kinds - known or kinds), default=str(after["verdict"]))


def died(micrograph: str, stage: str, death: Death) -> Cells:
    """The cell of a micrograph whose process was ended."""
    kind, verdict = ("timeout", Verdict.TIMEOUT) if death.timeout else ("crash", Verdict.ERROR)
    finding = {"kind": kind, "check": "", "detail": death.reason}
    return {
        "/".join((stage, *PLACE, micrograph)): {"verdict": str(verdict), "reason": death.reason, "findings": [finding]}
    }


def micrograph_of(cell: str) -> str:
    return cell.split("/", 3)[3]


def order(cell: str) -> int:
    return next(stage.order for stage in STAGES if stage.value == cell.split("/")[0])
