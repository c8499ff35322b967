"""Checks: one module a stage. Each looks at what one stage showed and at the contract, and says what is wrong.

`REGISTRY` holds every ID that a finding can carry, those included that are found while a program is measured.
"""

from __future__ import annotations

from conformance.checks import cache, capture, codegen, decomposition, fusion, measured, postgrad, runtime
from conformance.checks.registry import REGISTRY, Check, Seen, check, declare
from conformance.stage import Stage
from conformance.verdict import Finding

__all__ = ["REGISTRY", "Check", "Seen", "all_checks", "check", "declare", "findings", "measured"]
MODULES = (capture, decomposition, postgrad, fusion, codegen, runtime, cache)


def all_checks() -> list[Check]:
    """Every registered ID, in order."""
    return [REGISTRY[id] for id in sorted(REGISTRY)]


def findings(stage: Stage, seen: Seen) -> list[Finding]:
    """What the checks of a stage say of an observation."""
    return [finding for entry in all_checks() if entry.stage is stage for finding in entry(seen)]
