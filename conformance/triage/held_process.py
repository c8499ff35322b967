"""Holding the compiles of a process that a triaged program started."""

from __future__ import annotations

from typing import Any

from conformance import plugins
from conformance.backends.inductor.triage.holder import holding
from conformance.triage.hold import Hold, Journal

_entered: list[Any] = []


def enter(hold: Hold, journal: Journal) -> None:
    """From now on, for as long as the process lives."""
    plugins.load_plugins()
    manager = holding(hold, journal)
    manager.__enter__()
    _entered.append(manager)
