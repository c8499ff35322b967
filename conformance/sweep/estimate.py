"""What a sweep will take, before it runs: cases and seconds of each environment, from recorded costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from conformance import paths
from conformance.errors import UsageError
from conformance.sweep.costs import STARTING, Costs
from conformance.sweep.spec import Environment, Sweep, Work


@dataclass(frozen=True)
class Estimate:
    environment: Environment
    cases: int
    cells: int
    seconds: float  # of work, on one slot
    made: bool  # is the environment there already?


def estimate(sweep: Sweep, costs: Costs) -> list[Estimate]:
    return [_estimate(one, costs) for one in sweep.environments]


def _estimate(environment: Environment, costs: Costs) -> Estimate:
    try:
        units = list(_units(environment.work))
    except (UsageError, ImportError):  # installed there and not here; a mistake is said by the environment itself
        units = []
    stages = len(environment.work.stages) or 7
    if environment.work.kind == "fuzz":
        seconds = 60.0 * environment.work.minutes * len(units)
    else:
        seconds = sum(map(costs.seconds, units))
    cells = len(units) * stages if environment.work.kind == "cells" else len(units)
    return Estimate(environment, len(units), cells, seconds + STARTING, is_made(environment))


def is_made(environment: Environment) -> bool:
    folder = paths.cache_folder("envs")
    return bool(environment.interpreter) or (folder / environment.recipe().folder_name() / "ready").exists()


@cache
def _units(work: Work) -> Iterable[str]:
    """The units as this interpreter sees them: what is installed elsewhere is known when it says hello."""
    if work.kind == "cells":
        from conformance.plan import Plan, select_cells

        cells = select_cells(
            work.backends, work.stages[:1] or ("capture",), work.targets, work.micrographs, work.folder or None
        )
        return [str(case) for case in Plan(cells).cases()]
    if work.kind in ("fuzz", "selftest", "ops"):
        from conformance.sweep.kinds import KINDS

        return KINDS[work.kind](work).units()
    return []


def at_once(estimates: Iterable[Estimate], slots: int) -> float:
    """Seconds until the end, with so many slots that are never idle."""
    return sum(one.seconds for one in estimates) / max(slots, 1)
