"""Which blocks of the compilers' source a process has run: each block of each function says so when it begins.

No tracer is set, so that Dynamo sees the same interpreter as ever, and a block costs about 0.05 µs."""

from __future__ import annotations

import ast
import builtins
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from conformance.mutants import recompile, sources

MARK = "_conformance_reached_"  # a builtin: functions made with other globals find it, too


@dataclass(frozen=True)
class Block:
    """Statements that run one after the other; `line` is that of the first."""

    file: str
    function: str
    line: int


@cache
def blocks() -> tuple[Block, ...]:
    """Every block of the compilers' functions. The number of a block is its place in this."""
    return tuple(block for file in sources.files() for block, _ in blocks_of(recompile.tree_of(file), file))


def blocks_of(tree: ast.Module, file: str) -> Iterator[tuple[Block, list[ast.stmt]]]:
    """Blocks in the order of the source, with their statements."""
    yield from _inside(tree.body, file, [], False)


def _inside(body: list[ast.stmt], file: str, names: list[str], counted: bool) -> Iterator[tuple[Block, list[ast.stmt]]]:
    if counted:
        yield Block(file, ".".join(names), body[0].lineno), body
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = not isinstance(statement, ast.ClassDef)
            yield from _inside(statement.body, file, [*names, statement.name], function)
        else:
            for inner in bodies(statement):
                yield from _inside(inner, file, names, counted)


def bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks that a statement holds."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(statement, name, None)
        if inner and isinstance(inner, list):
            yield inner
    for handler in getattr(statement, "handlers", []) + getattr(statement, "cases", []):
        yield handler.body


def instrument() -> int:
    """Have every block of every function that lives here say that it ran. Returns the number of functions."""
    setattr(builtins, MARK, bytearray(len(blocks())))
    changed, number = {}, 0
    for file in sources.files():
        tree = recompile.parsed(file)
        for _, body in list(blocks_of(tree, file)):
            body.insert(_after_docstring(body), _said(number, body[0]))
            number += 1
        changed[file] = ast.fix_missing_locations(tree)
    return recompile.put_in(changed)


def _after_docstring(body: list[ast.stmt]) -> int:
    first = body[0]
    docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return int(docstring)


def _said(number: int, at: ast.stmt) -> ast.stmt:
    statement = ast.parse(f"{MARK}[{number}] = 1").body[0]
    for node in ast.walk(statement):
        ast.copy_location(node, at)
    return statement


def watch() -> mmap.mmap:
    """From here on, what this process and those that it forks reach is seen in what this returns."""
    seen = mmap.mmap(-1, len(blocks()))
    setattr(builtins, MARK, seen)
    return seen


def reached(seen: mmap.mmap) -> list[int]:
    return [number for number, byte in enumerate(seen[:]) if byte]
