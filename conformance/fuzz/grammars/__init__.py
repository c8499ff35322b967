"""The grammars, by class of program."""

from __future__ import annotations

from conformance.fuzz.grammar import Grammar
from conformance.fuzz.grammars import (
    autograd,
    indices,
    operators,
    python,
    randoms,
    refused_dtypes,
    refused_values,
    scenarios,
    world,
    writes,
)

GRAMMARS: dict[str, Grammar] = {
    grammar.name: grammar
    for grammar in (
        writes.GRAMMAR,
        *operators.GRAMMARS,
        indices.GRAMMAR,
        refused_values.GRAMMAR,
        *refused_dtypes.GRAMMARS,
        world.GRAMMAR,
        python.GRAMMAR,
        autograd.GRAMMAR,
        randoms.GRAMMAR,
        scenarios.GRAMMAR,
    )
}
