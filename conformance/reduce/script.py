"""A Python script made smaller: statements, blocks, arguments, sizes, dtypes; as long as a question is answered with
yes.

What is asked runs the script, so that candidates which cannot run are sorted out before: those that do not parse, and
those that read a name nobody defines.
"""

from __future__ import annotations

import ast
import builtins
import copy
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from conformance.reduce.ddmin import ddmin, first_yes

Holds = Callable[[list[str]], list[bool]]
COMPOUND = (ast.If, ast.With, ast.For, ast.While, ast.Try)
SMALL = 4  # sizes up to this are left alone
PLAIN_DTYPE = {
    "bfloat16": "float32",
    "half": "float32",
    "float16": "float32",
    "float64": "float32",
    "double": "float32",
    "int32": "int64",
}
KNOWN = {*dir(builtins), "__file__", "__name__", "__doc__"}


@dataclass
class Reduced:
    """The smallest script that was found, and how it was found."""

    text: str
    before: int  # statements
    after: int
    tries: int = 0
    seconds: float = 0.0
    history: list[str] = field(default_factory=list)


def processor_time() -> float:
    """Seconds of this process and of those that it started and that have ended: a busy machine changes no answer."""
    return sum(os.times()[:4])


def statements(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) and not isinstance(node, ast.Pass) for node in ast.walk(tree))


class ScriptReducer:
    """`holds` answers for several texts at once. Nothing new is tried after `limit` seconds by the clock, which counts
    processor time if nothing else is said."""

    def __init__(
        self,
        text: str,
        holds: Holds,
        limit: float = 60.0,
        width: int = 2,
        clock: Callable[[], float] = processor_time,
    ) -> None:
        self.tree = ast.parse(text)
        self.holds, self.clock, self.until, self.width = holds, clock, clock() + limit, width
        self.undefined = _undefined(self.tree)
        self.known: dict[str, bool] = {}
        self.found = Reduced(text, statements(self.tree), statements(self.tree))

    def run(self) -> Reduced:
        start = time.monotonic()
        if self._taken([("what nobody reads dropped", swept(self.tree)), ("as it is", self.tree)]):
            before = ""
            while before != self.found.text and not self._late():
                before = self.found.text
                self._levels()
                self._edits()
        self.found.after = statements(self.tree)
        self.found.seconds = time.monotonic() - start
        return self.found

    def _late(self) -> bool:
        return self.clock() > self.until

    # ------------------------------------------------------------------------------------------------ asking

    def _possible(self, text: str) -> bool:
        """Can it run? Not if it does not parse, or reads a name that nothing defines any more."""
        return bool(text) and (text in self.known or _undefined(ast.parse(text)) <= self.undefined)

    def _ask(self, trees: Sequence[ast.Module]) -> list[bool]:
        """The answers up to the first yes; those after it are taken for no. What cannot run is not asked, so that as
        many as are asked at a time do run."""
        texts = [_text(tree) for tree in trees]
        possible = [text for text in dict.fromkeys(texts) if self._possible(text)]
        answers = dict(zip(possible, first_yes(possible, self._asked, self.width), strict=True))
        return [answers.get(text, False) for text in texts]

    def _asked(self, texts: Sequence[str]) -> list[bool]:
        fresh = [text for text in texts if text not in self.known]
        if fresh and not self._late():
            self.found.tries += len(fresh)
            self.known.update(zip(fresh, self.holds(fresh), strict=True))
        return [self.known.get(text, False) for text in texts]

    def _take(self, tree: ast.Module, why: str) -> None:
        self.tree = tree
        self.found.text = ast.unparse(tree)
        self.found.history.append(f"{why}: {statements(tree)} statements")

    # -------------------------------------------------------------------------------------------- statements

    def _levels(self) -> None:
        """Statements are left out, the outermost first."""
        depth = 0
        while not self._late():
            places = _places(self.tree, depth)
            if not places:
                return

            def holds(parts: list[list[int]], places: list[int] = places) -> list[bool]:
                return self._ask([_only(self.tree, {*places} - {*part}) for part in parts])

            if len(places) > 1 or depth:
                whole = self._ask([_only(self.tree, {*places})])[0] if depth else False
                kept = [] if whole else ddmin(places, holds)
                if len(kept) < len(places):
                    self._take(_only(self.tree, {*places} - {*kept}), f"depth {depth}")
            depth += 1

    # ------------------------------------------------------------------------------------------------- edits

    def _edits(self) -> None:
        """Small changes, each taken as soon as it holds; then the rest is looked at again."""
        tried: set[str] = set()
        progress = True
        while progress and not self._late():
            progress = False
            batch: list[tuple[str, ast.Module]] = []
            for why, tree in edits(self.tree):
                text = _text(tree)
                if text not in tried and self._possible(text):
                    batch.append((why, tree))
                tried.add(text)
                if len(batch) == self.width:
                    if progress := self._taken(batch):
                        break
                    batch = []
                if self._late():
                    return
            else:
                progress = bool(batch) and self._taken(batch)

    def _taken(self, batch: list[tuple[str, ast.Module]]) -> bool:
        for (why, tree), yes in zip(batch, self._ask([tree for _, tree in batch]), strict=True):
            if yes:
                self._take(tree, why)
                return True
        return False


# ---------------------------------------------------------------------------------------------- statements


def swept(tree: ast.Module) -> ast.Module:
    """A copy without docstrings and prints, and without the imports, definitions and plain values that nobody reads."""
    made, gone = tree, {number for number, node, _ in _numbered(tree) if _only_speaks(node)}
    while gone:
        made = _only(made, gone)
        read = {node.id for node in ast.walk(made) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        members = {id(part) for node in ast.walk(made) if isinstance(node, ast.ClassDef) for part in node.body}
        gone = {
            number for number, node, _ in _numbered(made) if id(node) not in members and _unread(node, read)
        }  # a member of a class may be looked up by a name that is not written anywhere
    return made


def _only_speaks(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr):
        return False
    call = node.value
    return isinstance(call, ast.Constant) or (isinstance(call, ast.Call) and ast.unparse(call.func) == "print")


def _unread(node: ast.stmt, read: set[str]) -> bool:
    """Does the statement do nothing but give values to names that are not read?"""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return False
        return not {(alias.asname or alias.name).split(".")[0] for alias in node.names} & {*read, "*"}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return not node.decorator_list and node.name not in read
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        calls = any(isinstance(inner, (ast.Call, ast.Await, ast.Yield)) for inner in ast.walk(node.value))
        return not calls and not {target.id for target in node.targets if isinstance(target, ast.Name)} & read
    return False


def _numbered(tree: ast.AST) -> list[tuple[int, ast.stmt, int]]:
    """Every statement with its number, in the order of the text, and its depth."""
    found: list[tuple[int, ast.stmt, int]] = []

    def walk(node: ast.AST, depth: int) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                found.append((len(found), child, depth))
                walk(child, depth + 1)
            else:
                walk(child, depth)

    walk(tree, 0)
    return found


def _places(tree: ast.AST, depth: int) -> list[int]:
    return [number for number, node, deep in _numbered(tree) if deep == depth and not isinstance(node, ast.Pass)]


def _only(tree: ast.Module, gone: set[int]) -> ast.Module:
    """A copy without these statements; a block that is left empty passes."""
    made = copy.deepcopy(tree)
    drop = {id(node) for number, node, _ in _numbered(made) if number in gone}
    for node in ast.walk(made):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                left = [one for one in block if id(one) not in drop]
                setattr(
                    node, name, left or ([ast.Pass()] if name == "body" and not isinstance(node, ast.Module) else [])
                )
    return made


# --------------------------------------------------------------------------------------------------- edits


def edits(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Copies of a tree with one small change each, those first that take most away."""
    yield from _unwrapped(tree)
    yield from _without_decorators(tree)
    yield from _smaller_numbers(tree)
    yield from _plain_dtypes(tree)
    yield from _fewer_arguments(tree)
    yield from _simpler_expressions(tree)


def _changed(tree: ast.Module, place: int, change: Callable[[ast.AST], ast.AST | list[ast.stmt] | None]) -> ast.Module:
    """A copy in which the node at this place of the walk is replaced (or only changed, where None comes back)."""
    made = copy.deepcopy(tree)
    target = list(ast.walk(made))[place]
    result = change(target)
    if result is not None:
        _Replace(target, result).visit(made)
    return ast.fix_missing_locations(made)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST | list[ast.stmt]) -> None:
        self.old, self.new = old, new

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return super().generic_visit(node)

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:  # type: ignore[override]
        return self.new if node is self.old else super().visit(node)


def _unwrapped(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    for place, node in enumerate(ast.walk(tree)):
        if isinstance(node, COMPOUND):
            yield "block unwrapped", _changed(tree, place, lambda n: n.body)  # type: ignore[attr-defined]
            if getattr(node, "orelse", None):
                yield "block unwrapped", _changed(tree, place, lambda n: n.orelse)  # type: ignore[attr-defined]


def _without_decorators(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    for place, node in enumerate(ast.walk(tree)):
        for number in range(len(getattr(node, "decorator_list", ()))):
            yield "decorator dropped", _changed(tree, place, lambda n, i=number: n.decorator_list.pop(i) and None)  # type: ignore[misc]
        if isinstance(node, ast.Assert) and node.msg is not None:
            yield "message dropped", _changed(tree, place, lambda n: setattr(n, "msg", None))


def _smaller_numbers(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Every place where a size stands is changed at once: sizes belong together."""
    sizes = {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is int and n.value > SMALL
    }
    for size in sorted(sizes, reverse=True):
        for smaller in dict.fromkeys((2, SMALL, size // 4, size // 2)):
            if 1 < smaller < size:
                made = copy.deepcopy(tree)
                for node in ast.walk(made):
                    if isinstance(node, ast.Constant) and type(node.value) is int and node.value == size:
                        node.value = smaller
                yield f"{size} → {smaller}", made


def _plain_dtypes(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    named = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in PLAIN_DTYPE}
    for name in sorted(named):
        made = copy.deepcopy(tree)
        for node in ast.walk(made):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name):
                node.attr = PLAIN_DTYPE[name]
        yield f"{name} → {PLAIN_DTYPE[name]}", made


def _fewer_arguments(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    for place, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Call):
            for number in range(len(node.keywords)):
                yield "argument dropped", _changed(tree, place, lambda n, i=number: n.keywords.pop(i) and None)  # type: ignore[misc]
            for number in reversed(range(len(node.args))):
                yield "argument dropped", _changed(tree, place, lambda n, i=number: n.args.pop(i) and None)  # type: ignore[misc]


def _simpler_expressions(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """An expression by a part of it."""
    modules = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for place, node in enumerate(ast.walk(tree)):
        for name in _parts(node):
            if name == "receiver" and getattr(_part(node, name), "id", "") in modules:
                continue  # a module is no value of the program
            yield "expression by its part", _changed(tree, place, lambda n, name=name: _part(n, name))  # type: ignore[misc]


def _parts(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.BinOp):
        return ("left", "right")
    if isinstance(node, ast.BoolOp):
        return tuple(map(str, range(len(node.values))))
    if isinstance(node, ast.UnaryOp):
        return ("operand",)
    if isinstance(node, ast.IfExp):
        return ("body", "orelse")
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return ("value",)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "compile":
        return ("receiver", "argument") if node.args else ("receiver",)
    if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name):
        return ("argument",)
    return ()


def _part(node: ast.AST, name: str) -> ast.AST:
    if isinstance(node, ast.BoolOp):
        return node.values[int(name)]
    if name == "receiver":
        return node.func.value  # type: ignore[attr-defined]
    if name == "argument":
        return node.args[0]  # type: ignore[attr-defined]
    return getattr(node, name)


# ------------------------------------------------------------------------------------------------- helpers


def _text(tree: ast.Module) -> str:
    """ "" where it is no Python."""
    try:
        text = ast.unparse(tree)
        compile(text, "candidate", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):
        return ""
    return text


def _undefined(tree: ast.AST) -> set[str]:
    """Names that are read and that nothing in the script defines."""
    read: set[str] = set()
    defined: set[str] = set(KNOWN)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            defined.add(node.name)
    return read - defined
