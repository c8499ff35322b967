"""What `bench` measured, kept as JSON Lines: so that a slowdown of the suite is seen like one of a compiler.

Ratios of one run are comparable with those of another run on a machine of the same kind; seconds are not.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.commands.bench_runs import Row
from conformance.errors import UsageError

KIND = ("machine", "cores", "torch", "python")  # what must be the same for two lines to be compared


def line(rows: list[Row]) -> dict[str, Any]:
    """One line: where and of what it was measured, and the ratios."""
    from datetime import UTC, datetime

    from conformance import environment
    from conformance.plan import cores
    from conformance.revision import commit, revision

    env = environment.environment()
    return {
        "schema": "conformance-bench/1",
        "suite": revision(),
        "commit": commit(),
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": env["machine"],
        "cores": cores(),
        "torch": str(env["torch"]).split("+")[0],
        "python": ".".join(str(env["python"]).split(".")[:2]),
        "ratios": {what: round(value, 4) for what, value, _ in rows},
    }


def append(file: Path, measured: Mapping[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(measured, ensure_ascii=False) + "\n")


def before(file: Path, measured: Mapping[str, Any]) -> dict[str, float]:
    """What lines of the same kind of machine said of each ratio: the median."""
    values: dict[str, list[float]] = {}
    for number, text in enumerate(file.read_text("utf-8").splitlines(), 1):
        try:
            known = json.loads(text)
            same = all(known[key] == measured[key] for key in KIND)
            ratios = known["ratios"].items() if same else ()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(f"{file}, line {number}: not a line of `conformance bench --record`") from None
        for what, value in ratios:
            values.setdefault(what, []).append(value)
    return {what: statistics.median(found) for what, found in values.items()}


def slower(rows: list[Row], known: Mapping[str, float], limit: float) -> list[str]:
    """The ratios that have a goal and are more than `limit` times as far from it as they were."""
    found = []
    for what, value, goal in rows:
        was = known.get(what)
        if was and goal and (value > limit * was if goal.startswith("≤") else value < was / limit):
            found.append(f"{what}: {value:.2f}, it was {was:.2f}")
    return found
