"""The grammars, by class of program."""

from __future__ import annotations

from conformance.fuzz.grammar import Grammar
from conformance.fuzz.grammars import (
    autograd,
    converters,
    decoders,
    indices,
    mutants,
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
        # Those that are written for other compilers.
        *converters.GRAMMARS,
        *decoders.GRAMMARS,
        # Those that the cheapest rungs say most of come first: a short session begins with them.
        world.GRAMMAR,
        python.GRAMMAR,
        scenarios.GRAMMAR,
        autograd.GRAMMAR,
        refused_values.GRAMMAR,
        *refused_dtypes.GRAMMARS,
        writes.GRAMMAR,
        *operators.GRAMMARS,
        indices.GRAMMAR,
        mutants.GRAMMAR,
        randoms.GRAMMAR,
    )
}
