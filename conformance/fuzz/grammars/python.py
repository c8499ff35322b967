"""Python around tensors: objects, containers, generators, exceptions and context managers, with side effects that must
be seen after the call, and something in the middle that may break the graph."""

from __future__ import annotations

from conformance.fuzz.grammar import Choices, Grammar, names
from conformance.fuzz.grammars import (
    python_containers,
    python_control,
    python_exceptions,
    python_generators,
    python_methods,
    python_modules,
    python_objects,
    python_tools,
)

TEXT = """
import abc, collections, contextlib, copy, dataclasses, enum, functools, itertools, math, operator, types, typing
$define

def program(x, log):
    $body

$entry
def play(compile):
    log = []
    g = compile(entry)
    results = []
    for scale in (1.0, 2.0, 2.0):
        try:
            results.append(g(torch.ones(3) * scale, log))
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RuntimeError) as error:
            results.append(type(error).__name__)
    return results, log$state
"""
MODULES = (
    python_containers,
    python_tools,
    python_objects,
    python_methods,
    python_modules,
    python_generators,
    python_exceptions,
    python_control,
)
PARTS = {name: part for module in MODULES for name, part in module.PARTS.items()}
MIDDLES = {
    "nothing": "pass",
    "log": "log.append(len(log))",
    "break": "torch._dynamo.graph_break()",
    "write": "x.add_(1)",
    "log and break": "log.append('before')\ntorch._dynamo.graph_break()\nlog.append('after')",
}
ENTRIES = {
    "function": "def entry(x, log):\n    return program(x, log)",
    "itself": "entry = program",
    "twice": "def entry(x, log):\n    return program(x, log), program(x + 1, log)",
    "method": "class Caller:\n    def run(self, x, log):\n        return program(x, log)\nentry = Caller().run",
    "module": "class Caller(torch.nn.Module):\n    def forward(self, x, log):\n        return program(x, log)\nentry = Caller()",
    "no_grad": "def entry(x, log):\n    with torch.no_grad():\n        return program(x, log)",
    "try": "def entry(x, log):\n    try:\n        return program(x, log)\n    finally:\n        log.append('end')",
    "closure": "def outer():\n    kept = []\n    def inner(x, log):\n        kept.append(len(kept))\n        return program(x, log), kept\n"
    "    return inner\nentry = outer()",
    "comprehension": "def entry(x, log):\n    return [program(t, log) for t in (x, x * 2)]",
    "star": "def entry(*args, **more):\n    return program(*args, **more)",
}


class Python(Grammar):
    """The definitions and the body follow the part."""

    def source(self, choices: Choices) -> str:
        define, body, *state = PARTS[choices["part"]]
        return self.filled(
            {
                "define": define,
                "body": body,
                "state": f", {state[0]}" if state else "",
                "middle": MIDDLES[choices["middle"]],
                "entry": ENTRIES[choices["entry"]],
            }
        )


GRAMMAR = Python(
    name="python",
    text=TEXT,
    slots={"part": names(*PARTS), "middle": names(*MIDDLES), "entry": names(*ENTRIES)},
    rungs=("capture",),
    cause=("part",),
)
