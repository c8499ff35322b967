"""Making things smaller while a property holds: nodes of a graph, statements of a script, steps of a compiler."""

from conformance.reduce.ddmin import ddmin

__all__ = ["ddmin"]
