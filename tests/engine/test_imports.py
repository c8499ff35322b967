"""No module of the package imports itself by way of others. Read from the source: imports for type checkers and those
inside functions, which run when they are called, do not count."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import conformance

PACKAGE = Path(conformance.__file__).parent


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def at_import(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is imported."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from at_import(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for name in ("body", "orelse", "finalbody"):
                yield from at_import(getattr(node, name, None) or [])
            for handler in getattr(node, "handlers", ()):
                yield from at_import(handler.body)


def imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Module → the modules of the package that it imports: `from package import name` is the module of that name, or
    else the package itself."""
    found: dict[str, set[str]] = {module: set() for module in sources}
    for module, source in sources.items():
        for node in at_import(ast.parse(source).body):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                assert not node.level, f"{module} imports by a relative name: write it out"
                names = [
                    name if (name := f"{node.module}.{alias.name}") in sources else str(node.module)
                    for alias in node.names
                ]
            found[module] |= {name for name in names if name in sources} - {module}
    return found


def cycle(sources: Mapping[str, str]) -> list[str]:
    """The modules of one cycle, each importing the next; empty where there is none."""
    try:
        TopologicalSorter(imports(sources)).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    sources = {module_name(path): path.read_text() for path in PACKAGE.rglob("*.py")}
    assert len(sources) > 200
    assert cycle(sources) == [], "→".join(cycle(sources))


@pytest.mark.parametrize(
    ("second", "is_cycle"),
    [
        ("from package.first import one", True),
        ("import package.first", True),
        ("from package import first", True),
        ("try:\n    import package.first\nexcept ImportError:\n    pass", True),
        ("class A:\n    from package.first import one", True),
        ("def f():\n    from package.first import one", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package.first import one", False),
        ("import other", False),
    ],
)
def test_a_cycle_is_seen(second: str, is_cycle: bool) -> None:
    sources = {"package": "", "package.first": "from package.second import two", "package.second": second}
    assert bool(cycle(sources)) is is_cycle
