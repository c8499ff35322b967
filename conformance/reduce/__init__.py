"""Making things smaller while a property holds: nodes of a graph, lines, calls and forms of the fuzzer, statements of a
script, steps of a compiler. What a smaller one is, each of them says; the search is here."""

from conformance.reduce.ddmin import ddmin, first_yes, one_by_one
from conformance.reduce.descent import descend

__all__ = ["ddmin", "descend", "first_yes", "one_by_one"]
