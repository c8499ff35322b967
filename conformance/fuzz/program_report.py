"""What is said of the programs that a session played: numbers, findings by cause, and what was never reached."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from conformance.errors import few
from conformance.fuzz import reach
from conformance.fuzz.grammars import GRAMMARS
from conformance.fuzz.program_lane import Lane
from conformance.fuzz.program_tasks import ALONE

NAMED = 6  # of what was reached or never reached


def summary(lane: Lane) -> dict[str, Any]:
    """Numbers of the session. What is compiled is counted in programs: many share a compile."""
    elapsed = max(time.monotonic() - lane.started, 1e-9)
    return {
        **lane.counts,
        "plays": dict(lane.plays),
        "workers": lane.workers.count,
        "seconds": round(lane.seconds, 1),
        "seconds_by_job": {name: round(seconds, 1) for name, seconds in sorted(lane.spent.items())},
        "drawn_per_minute": round(60 * lane.counts["drawn"] / elapsed, 1),
        "compiled_per_minute": round(60 * lane.plays["inductor"] / elapsed, 1),
        "causes": len(lane.new),
        "reports": len({finding.report for finding in lane.new if finding.report}),
        "only_lower_rungs": sum(any(ALONE in note for note in finding.notes) for finding in lane.new),
        "stages": dict(Counter(finding.stage for finding in lane.new)),
        "unconfirmed": len(lane.unconfirmed),
    }


def coverage(lane: Lane) -> Iterator[str]:
    """What was reached at each stage, the rarest first, and what never was: ops that have a lowering, entries of the grammars."""
    yield "\nreached, by stage (the rarest are named):"
    for stage, things in reach.table(lane.reached).items():
        rare = [shortened(thing) for thing in sorted(things, key=lambda thing: things[thing])]
        yield f"  {stage}: {len(things)} kinds: {few(rare, NAMED)}" if things else f"  {stage}: nothing is recorded"
    never, known = ([], 0) if lane.place else reach.never_lowered(lane.reached)
    if known:
        yield f"ops with a lowering in Inductor: {known - len(never)} of {known} reached; never: {few(never, NAMED)}"
    yield "entries of the grammars that were never drawn:"
    for name in lane.grammars:
        slots = GRAMMARS[name].slots.items()
        missing = [f"{slot}={key}" for slot, table in slots for key in table if not lane.drawn[name, slot, key]]
        total = sum(len(table) for _, table in slots)
        yield f"  {name}: {len(missing)} of {total}" + (f": {few(missing, NAMED)}" if missing else "")


def shortened(thing: str) -> str:
    """Without what every such name begins with."""
    return re.sub(r"^(torch\.ops\.|Explanation: |\+- )", "", thing)[:70]


def tell(lane: Lane, console: Console, with_coverage: bool) -> None:
    """The findings by cause, known reports first, with their numbers."""

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style)

    for finding in sorted(lane.new, key=lambda finding: (not finding.report, finding.stage)):
        say(f"\n{finding.id} {finding}", "bold")
        say(
            f"  met {finding.met} times, first after {finding.seconds:.0f} s; smallest: {dict(finding.program.choices)}"
        )
        say(
            f"  repro: python {finding.repro}" if finding.repro else f"  confirmed by {finding.rung} in a fresh process"
        )
        say(f"  keep:  conformance pin {finding.id}")
        for note in finding.notes:
            say(f"  {note}", "yellow")
    for finding in lane.unconfirmed:
        say(f"not reproduced in a fresh process: {finding}", "yellow")
    if lane.new:
        public = [finding for finding in lane.new if finding.report]
        say(f"\n{len(lane.new)} causes, {len(public)} of them public reports", "bold")
        for text, times in lane.met.most_common():
            say(f"{text} met {times} times", "dim")
    for line in coverage(lane) if with_coverage else ():
        say(line)
