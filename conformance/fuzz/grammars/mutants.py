"""Mutants of what exists: a micrograph of the library as straight-line text, with one or two statements changed, other inputs
and a region around it. What eager refuses, or where it contradicts itself, is no program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from conformance.fuzz.grammar import Choices, Grammar, names
from conformance.fuzz.grammars.seeds import Seed, has_text, seed, seeds

TEXT = """
from operator import setitem as _operator_setitem
from torch import device, inf, nan

def numbers(shape, dtype, at):
    values = (torch.arange(torch.Size(shape).numel()) * 37 + 11 * at) % 4099  # a prime: no two are equal
    return (values.float() / 2000 - 0.9).view(shape).to(dtype)

def body($parameters):
    $statements
    return $outputs

def f($parameters):
    $region

def inputs():
    $inputs
    $given
    return $arguments
"""
# Words that may stand for one another: each becomes the next of its group.
NEIGHBOURS = (
    ("silu", "gelu", "softplus", "mish", "hardswish", "elu"),
    ("relu", "sigmoid", "tanh", "abs", "sin"),
    ("sum", "mean", "amax", "amin"),
    ("maximum", "minimum", "add", "sub", "mul"),
    ("softmax", "log_softmax"),
    ("argmax", "argmin"),
    ("cumsum", "cumprod"),
    ("zeros_like", "ones_like"),
    ("index_add", "index_copy"),
    ("scatter", "scatter_add"),
    ("clone", "contiguous"),
    ("max_pool2d", "avg_pool2d"),
    ("rsqrt", "sqrt", "square"),
    ("add_", "sub_", "mul_", "copy_"),
    ("sort", "topk"),
    ("any", "all"),
    ("tril", "triu"),
    ("cat", "stack"),
)
# What is put after a statement; $v is what the statement gave.
AFTER = {
    "clone": "$v = $v.clone()",
    "unsqueezed and back": "$v = $v.unsqueeze(0).squeeze(0)",
    "other layout": "$v = $v.mT.contiguous().mT",
    "sliced whole": "$v = $v[:]",
    "times one": "$v = $v * 1",
    "zeros added": "$v = $v + torch.zeros_like($v)",
    "double and back": "$v = $v.double().to($v.dtype)",
    "to double": "$v = $v.double()",
    "detached": "$v = $v.detach()",
    "written": "$v = $v + 0\n$v.mul_(2)",
    "filled in part": "$v = $v.clone()\n$v[..., :1] = 3",
    "written through a view": "$v = $v.clone()\n$v.view(-1)[::2].add_(1)",
    "written in place": "$v.add_(1)",
    "rows written": "$v[:1].mul_(2)",
    "column written by index": "$v = $v.clone()\n$v[..., torch.tensor([0])] = 1",
    "scattered": "$v = torch.slice_scatter($v, $v[:1] * 2, 0, 0, 1)",
    "masked": "$v = $v.masked_fill($v > 0.5, 0)",
    "first input written": "$first.add_(1)",
    "first input's part written": "$first[..., :1].mul_(2)",
    "first input takes it": "$first.copy_($v)",
    "last input written": "$last.mul_(2)",
    "flipped": "$v = $v.flip(0)",
    "rolled": "$v = $v.roll(1, -1)",
    "padded and cut": "$v = F.pad($v, (1, 1))[..., 1:-1]",
    "halves exchanged": "$v = torch.cat($v.chunk(2, -1)[::-1], -1)",
    "as_strided": "$v = $v.as_strided($v.shape, $v.stride())",
    "expanded": "$v = $v.unsqueeze(0).expand(2, *$v.shape)[1]",
}
KINDS = {"none": "", "neighbour": "", "doubled": "", "moved up": "", "kept": "", "its sum": ""} | AFTER
PLACES = names(*map(str, range(12)))
GIVEN = {
    "as they are": "",
    "first twice": "$last = $first",
    "last is a view of the first": "$last = $first[:]",
    "transposed": "$first = $first.mT.contiguous().mT",
    "with offset": "$first = torch.cat([$first.flatten()[:1], $first.flatten()])[1:].view($first.shape)",
    "every other": "$first = $first.repeat_interleave(2, -1)[..., ::2]",
    "gradient": "$first = $first.requires_grad_() * 1",
    "double": "$first, $last = $first.double(), $last.double()",
    "cut out": "$first = F.pad($first, (1, 2))[..., 1:-2]",
    "empty": "$first = $first[:0]",
}
REGIONS = {
    "none": "return body($parameters)",
    "no_grad": "with torch.no_grad():\n    return body($parameters)",
    "checkpoint": "return torch.utils.checkpoint.checkpoint(body, $parameters, use_reentrant=False)",
    "autocast off": "with torch.autocast('cpu', enabled=False):\n    return body($parameters)",
    "vmap": "return torch.vmap(body)(*(torch.stack([t, t]) for t in ($parameters,)))",
    "twice": "return body($parameters), body($parameters)",
}


class Names(Mapping[str, str]):
    """The names of seeds as a table; the library is read when they are first asked for."""

    def __getitem__(self, key: str) -> str:
        return {name: name for name in seeds()}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(seeds())

    def __len__(self) -> int:
        return len(seeds())


def mutated(plain: Seed, choices: Choices) -> tuple[list[str], list[str]]:
    """The statements and the outputs of a seed after both mutations."""
    statements, outputs = list(plain.statements), list(plain.outputs)
    for which in ("first", "second"):
        kind, place = choices[which], int(choices[f"{which}_place"])
        if kind == "none" or not statements:
            continue
        _mutate(statements, outputs, kind, place % len(statements), plain)
    return statements, outputs


def _mutate(statements: list[str], outputs: list[str], kind: str, at: int, plain: Seed) -> None:
    target = next(
        (name for line in statements[at::-1] if (name := line.split(" = ", 1)[0]).isidentifier()), plain.first
    )
    if kind in AFTER:
        text = AFTER[kind].replace("$v", target).replace("$first", plain.first).replace("$last", plain.last)
        statements[at + 1 : at + 1] = text.splitlines()
    elif kind == "neighbour":
        statements[at] = neighbour(statements[at])
    elif kind == "doubled" and statements[at].startswith(f"{target} = "):
        statements.insert(at + 1, statements[at].replace(" = ", f" = {target} + ", 1))
    elif kind == "moved up" and at:
        statements[at - 1], statements[at] = statements[at], statements[at - 1]
    elif kind == "kept":
        outputs.append(target)
    elif kind == "its sum":
        outputs.append(f"{target}.sum(0)")


@cache
def _next_words() -> dict[str, str]:
    return {word: group[(k + 1) % len(group)] for group in NEIGHBOURS for k, word in enumerate(group)}


def neighbour(statement: str) -> str:
    """The statement with its op exchanged for a neighbour; as it is where there is none."""
    for operator, other in ((" + ", " - "), (" - ", " * "), (" * ", " + ")):
        if operator in statement:
            return statement.replace(operator, other, 1)
    for found in re.finditer(r"\b([a-z_0-9]+)\(", statement):
        if found[1] in _next_words():
            return statement[: found.start(1)] + _next_words()[found[1]] + statement[found.end(1) :]
    return statement


class Mutants(Grammar):
    """The text follows the seed and its mutations."""

    def source(self, choices: Choices) -> str:
        plain = seed(choices["seed"])
        statements, outputs = mutated(plain, choices)
        parameters = ", ".join(plain.inputs)
        given = GIVEN[choices["given"]].replace("$first", plain.first).replace("$last", plain.last)
        return self.filled(
            {
                "statements": "\n".join(statements) or "pass",
                "outputs": ", ".join(outputs),
                "inputs": "\n".join(f"{name} = {text}" for name, text in plain.inputs.items()),
                "given": given,
                "region": REGIONS[choices["region"]],
                "parameters": parameters,
                "arguments": f"({parameters},)",
            }
        )


GRAMMAR = Mutants(
    name="mutants",
    text=TEXT,
    slots={
        "seed": Names(),
        "first": KINDS,
        "first_place": PLACES,
        "second": KINDS,
        "second_place": PLACES,
        "given": GIVEN,
        "region": REGIONS,
    },
    rungs=("decompositions", "inductor"),
    cause=("first", "second", "given", "region", "seed"),
    allowed=lambda choices: has_text(choices["seed"]),
)
