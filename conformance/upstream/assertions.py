"""How many assertions of a test held before it was stopped, read from its source.

A test that is stopped where a GPU must go on has shown something of its stage only if it had asserted something by then.
Runs inside the interpreter under test: Python 3.9, no dependencies.
"""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def held_before(trace: TracebackType | None, root: str) -> int:
    """The assertions that stand before the line at which each function of the checkout was left, in all functions of
    the traceback. What a helper had asserted that returned before is not counted."""
    count = 0
    while trace is not None:
        code = trace.tb_frame.f_code
        if os.path.abspath(code.co_filename).startswith(root + os.sep):
            count += _in_function(code.co_filename, code.co_name, code.co_firstlineno, trace.tb_lineno)
        trace = trace.tb_next
    return count


def _in_function(file: str, name: str, first: int, line: int) -> int:
    """Assertions of a function that end before a line. Decorators stand before `def`: the code begins with the first."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            starts = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
            if first in starts:
                return sum(_is_assertion(part) and (part.end_lineno or line) < line for part in _own_parts(node))
    return 0


@functools.lru_cache(maxsize=8)
def _tree(file: str) -> ast.AST:
    with open(file, encoding="utf-8", errors="replace") as source:
        return ast.parse(source.read())


def _own_parts(node: Any) -> Iterator[Any]:
    """Everything in a function but the functions and classes that it defines."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, NESTED):
            yield child
            yield from _own_parts(child)


def _is_assertion(node: Any) -> bool:
    """`assert …`, `self.assertEqual(…)`, `torch.testing.assert_close(…)`."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    return str(name).startswith("assert")
