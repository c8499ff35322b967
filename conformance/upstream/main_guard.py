"""The condition under which a test file runs its tests as a script, evaluated where pytest would not look at it.

PyTorch's files end in `if __name__ == "__main__": if HAS_GPU: run_tests()`: with no GPU, upstream runs none of their
tests, while pytest would run them all and see them fail. Runs inside the interpreter under test: Python 3.9, no
dependencies.
"""

from __future__ import annotations

import ast
import importlib.util
from typing import Any

STARTERS = ("run_tests", "main")


def refusal(source: str, namespace: dict[str, Any]) -> str | None:
    """Why upstream would not run the tests of this file here; None if it would, or if nothing says so."""
    block = _main_block(ast.parse(source))
    if block is None:
        return None
    names = dict(namespace)
    said: list[str] = []
    started = _walk(block.body, names, said)
    return None if started or not said else said[0]


def _main_block(tree: ast.Module) -> ast.If | None:
    for node in tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and "__main__" in ast.dump(node.test):
            return node
    return None


def _walk(body: list[ast.stmt], names: dict[str, Any], said: list[str]) -> bool:
    """Follow the block to the calls that start the tests. True when one is reached; else `said` has the reasons."""
    started = False
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _run(node, names)
        elif isinstance(node, ast.If):
            holds = _holds(node.test, names)
            branch, other = (node.body, node.orelse) if holds else (node.orelse, node.body)
            if not holds and _starts(other):
                said.append(f"upstream runs this file only if {ast.unparse(node.test)}, which does not hold here")
            started |= _walk(branch, names, said)
        elif _is_start(node):
            lacking = _lacking(node)
            if lacking:
                said.append(f"upstream runs this file only with {lacking}, which is not here")
            else:
                started = True
        elif isinstance(node, ast.Expr) and "exit" in ast.dump(node):
            break
    return started


def _holds(test: ast.expr, names: dict[str, Any]) -> bool:
    """The value of a condition; one that cannot be evaluated is taken to hold, so that the tests are run."""
    try:
        return bool(eval(compile(ast.Expression(test), "<main guard>", "eval"), names))
    except Exception:
        return True


def _run(node: ast.stmt, names: dict[str, Any]) -> None:
    try:
        exec(compile(ast.Module([node], []), "<main guard>", "exec"), names)
    except Exception:
        return


def _starts(body: list[ast.stmt]) -> bool:
    return any(_is_start(node) for statement in body for node in ast.walk(statement))


def _is_start(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in STARTERS


def _lacking(node: ast.AST) -> str:
    """The first thing of `run_tests(needs=…)` that is not here; upstream then runs nothing and says nothing."""
    call = node.value if isinstance(node, ast.Expr) else node
    given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "needs")]  # type: ignore[attr-defined]
    for value in given:
        parts = [value] if isinstance(value, ast.Constant) else list(getattr(value, "elts", []))
        for part in parts:
            name = getattr(part, "value", "")
            if name == "cuda" and not _has_gpu():
                return "a GPU"
            if isinstance(name, str) and name.isidentifier() and name != "cuda" and not _installed(name):
                return "the package " + name
    return ""


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
