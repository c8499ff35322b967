"""Two calls with the world changed in between: where a value lives, how it is read, and what it becomes."""

from __future__ import annotations

from conformance.fuzz.grammar import Choices, Grammar, names
from conformance.fuzz.grammars.world_places import PLACES

TEXT = """
$imports
$define
def helper(x):
    $read
    return $use

$entry
def play(compile):
    g = compile(entry)
    results = [g(torch.ones(2) * 4)]
    results.append(g(torch.ones(2) * 4))
    $change
    results.append(g(torch.ones(2) * 4))
    results.append(g(torch.ones(2) * 3))
    return results
"""
VALUES = {
    "numbers": ("2.0", "50.0"),
    "integers": ("2", "7"),
    "int to float": ("2", "2.0"),
    "bool to int": ("True", "1"),
    "zero's sign": ("0.0", "-0.0"),
    "none": ("None", "3.0"),
    "strings": ("'a'", "'b'"),
    "tensors": ("torch.tensor(2.0)", "torch.tensor(50.0)"),
    "shapes": ("torch.ones(2)", "torch.ones(1)"),
    "functions": ("torch.sin", "torch.cos"),
    "lambdas": ("(lambda t: t + 1)", "(lambda t: t + 2)"),
    "lists": ("[1, 2]", "[1, 2, 3]"),
    "types": ("torch.float64", "torch.float16"),
    "large": ("2 ** 40", "2 ** 41"),
    "nan": ("float('nan')", "1.0"),
}
USES = {
    "numbers": "x * v",
    "integers": "x * v",
    "int to float": "(torch.arange(2) + 1) * v",
    "bool to int": "(torch.arange(2) > 0) + v, type(v).__name__",
    "zero's sign": "x / v",
    "none": "x if v is None else x * v",
    "strings": "x + (1 if v == 'a' else 2), v",
    "tensors": "x * v",
    "shapes": "x[:1] + v",
    "functions": "v(x)",
    "lambdas": "v(x)",
    "lists": "x * len(v) + sum(v)",
    "types": "x.to(v)",
    "large": "(torch.arange(2)) * v",
    "nan": "x * v",
}
FIXED = {  # places whose values are their own
    "list sorted",
    "counter",
    "wrapped",
    "unbound method",
    "operator",
    "torch function",
    "builtin method",
}
ENTRIES = {
    "function": "def entry(x):\n    return helper(x)",
    "with a break": "def entry(x):\n    x = x + 1\n    torch._dynamo.graph_break()\n    return helper(x)",
    "read twice": "def entry(x):\n    return helper(x), helper(x + 1)",
    "in a module": "class Layer(torch.nn.Module):\n    def forward(self, x):\n        return helper(x)\nentry = Layer()",
    "in a loop": "def entry(x):\n    return [helper(x + k) for k in range(2)]",
    "no_grad": "def entry(x):\n    with torch.no_grad():\n        return helper(x)",
    "decorated": "def twice(fn):\n    def inner(x):\n        return fn(x) , 2\n    return inner\nentry = twice(helper)",
    "vmapped": "def entry(x):\n    return torch.vmap(lambda row: helper(row.expand(2)))(x)",
}
IMPORTS = (
    "import abc, collections, contextvars, dataclasses, enum, functools, itertools, operator, threading, types, weakref"
)


def allowed(choices: Choices) -> bool:
    if choices["place"] in FIXED and choices["value"] != "numbers":
        return False
    if choices["entry"] == "vmapped" and choices["value"] not in ("numbers", "integers", "none"):
        return False
    literal = choices["value"] in ("tensors", "shapes", "lists", "lambdas")
    code = choices["place"] in ("function's code", "method's code", "cell contents")
    return not (literal and code) and not (choices["place"] == "dict subclass" and choices["value"] == "lambdas")


class World(Grammar):
    """The slots `define`, `read`, `change` follow the place, `old`, `new` and `use` the value."""

    def source(self, choices: Choices) -> str:
        place, value = PLACES[choices["place"]], VALUES[choices["value"]]
        return self.filled(
            {
                **dict(zip(("define", "read", "change"), place, strict=True)),
                **dict(zip(("old", "new"), value, strict=True)),
                "use": USES[choices["value"]],
                "imports": IMPORTS,
                "entry": ENTRIES[choices["entry"]],
            }
        )


GRAMMAR = World(
    name="world",
    text=TEXT,
    slots={
        "place": names(*PLACES),
        "value": names(*VALUES),
        "entry": names(*ENTRIES),
    },
    rungs=("capture",),
    cause=("place|value",),
    allowed=allowed,
    by_place=True,
)
