"""Give functions of torch the code of a changed syntax tree, in this process alone. Files, modules and classes stay as they are.

Functions that live already get other code; a module that is imported later is made of the changed tree.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder, SourceFileLoader
from types import CodeType, FunctionType

from conformance.mutants.sources import ROOT


def parsed(file: str) -> ast.Module:
    """The syntax tree of a file of torch, to be changed."""
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


tree_of = cache(parsed)  # to be read


def compiled(tree: ast.Module, file: str) -> CodeType:
    return compile(tree, str(ROOT / file), "exec", dont_inherit=True)


def put_in(changed: dict[str, ast.Module]) -> int:
    """`changed`: file → its new tree. Returns how many living functions have other code now."""
    exchange: dict[CodeType, CodeType] = {}
    later: dict[str, CodeType] = {}
    for file, tree in changed.items():
        new = compiled(tree, file)
        if module_of(file) in sys.modules:
            exchange.update(_pairs(compiled(tree_of(file), file), new))
        else:
            later[module_of(file)] = new
    if later:
        sys.meta_path.insert(0, _Later(later))
    exchange = {old: new for old, new in exchange.items() if old != new}
    gc.unfreeze()  # frozen objects are not listed
    count = 0
    for found in gc.get_objects():
        if type(found) is FunctionType and (other := exchange.get(found.__code__)) is not None:
            found.__code__ = other
            count += 1
    return count


def module_of(file: str) -> str:
    return ".".join(["torch", *file.removesuffix(".py").removesuffix("/__init__").split("/")])


class _Later(PathFinder):
    """Finds modules whose code was changed before they were imported."""

    def __init__(self, code: dict[str, CodeType]) -> None:
        self._code = code

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def, override]
        if name not in self._code or (spec := PathFinder.find_spec(name, path, target)) is None:
            return None
        loader = _Loader(name, spec.origin or "")
        loader.code = self._code[name]
        spec.loader = loader
        return spec


class _Loader(SourceFileLoader):
    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        return self.code


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The code of each function before and after, by where it stands. Code nested in it comes with it, and is a pair of its own: what was
    made of it lives already."""
    theirs: dict[tuple[str, int], list[CodeType]] = {}
    for code in _nested(new):
        theirs.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
    ours: dict[tuple[str, int], list[CodeType]] = {}
    for code in _nested(old):
        ours.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
    for key, before in ours.items():
        after = theirs.get(key, [])
        if len(before) == len(after):
            yield from ((a, b) for a, b in zip(before, after, strict=True) if a.co_freevars == b.co_freevars)


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)
