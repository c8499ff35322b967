"""What a mutant changes: one condition, comparison, sign, number, flag or statement of one function.

What only says something (logs, messages, assertions, counters, names for debugging) is left alone: no fault of it is one of a compiler.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from conformance.errors import UsageError
from conformance.mutants import reach, recompile, sources
from conformance.stage import Stage

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
SAYS = re.compile(
    r"^(log|logger|logging|.*_log|warnings?|warn_once|print|trace_structured|counters|metrics|perf_hint_log|CompileEventLogger|"
    r"dynamo_timed|log_.*|.*_logger|unimplemented.*|getArtifactLogger|compile_id|chromium.*|get_metrics_context|"
    r"signpost_event|_step_logger|V\.debug.*|torch\._logging.*|graph_break_.*|format_.*|fail|record_function|TYPE_CHECKING)\b|\.(debug|info|warning|exception)$"
)
SILENT = re.compile(
    r"(^|\.)(__repr__|__str__|__del__|debug\w*|dump\w*|log_\w+|_log\w*|format_\w+|print_\w*|\w*_(str|message|msg)|profile\w*)$"
)


@dataclass(frozen=True)
class Site:
    """A place and what is changed there. `needs`: the block that must run for a difference; `spares`: one that must not."""

    file: str
    line: int
    column: int
    change: str
    function: str
    needs: int
    spares: int | None = None

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column}:{self.change}"

    @property
    def stage(self) -> Stage:
        stage = sources.stage_of(self.file)
        assert stage is not None
        return stage


Edit = Callable[[ast.AST], None]  # changes the node in place


def sites() -> Iterator[Site]:
    """Every change of every file, in the order of the source."""
    numbers = {(block.file, block.function, block.line): number for number, block in enumerate(reach.blocks())}
    for file in sources.files():
        yield from _sites(file, numbers)


def _sites(file: str, numbers: dict[tuple[str, str, int], int]) -> Iterator[Site]:
    for block, body in reach.blocks_of(recompile.tree_of(file), file):
        if SILENT.search(block.function):
            continue
        here = numbers[block.file, block.function, block.line]
        for statement in body:
            for node, change in _changes(statement):
                needs, spares = here, None
                if isinstance(statement, ast.If) and node is statement:
                    inside = numbers[file, block.function, statement.body[0].lineno]
                    needs, spares = (inside, None) if change == "never" else (here, inside)
                yield Site(file, node.lineno, node.col_offset, change, block.function, needs, spares)  # type: ignore[attr-defined]


def _changes(statement: ast.stmt) -> Iterator[tuple[ast.AST, str]]:
    """The nodes of a statement that can be changed, and how; those of the blocks in it are theirs."""
    if isinstance(
        statement,
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assert, ast.Raise, ast.Import, ast.ImportFrom),
    ):
        return
    if _says(statement):
        return
    if isinstance(statement, ast.If) and not _binds(statement.test) and not _only_raises(statement):
        yield statement, "never"
        yield statement, "always"
    if _can_go(statement):
        yield statement, "dropped"
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _of_expression(child)


def _of_expression(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    if _says(node) or isinstance(node, (ast.JoinedStr, ast.Lambda)):
        return
    for change, (applies, _) in CHANGES.items():
        if isinstance(node, ast.expr) and applies(node):
            yield node, change
    for child in ast.iter_child_nodes(node):
        yield from _of_expression(child)


def _says(node: ast.AST) -> bool:
    """Is it there to say something?"""
    if isinstance(node, ast.Expr):
        return _says(node.value) or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.AugAssign):
        return bool(SAYS.search(ast.unparse(node.target)))
    if isinstance(node, ast.Call):
        return bool(SAYS.search(ast.unparse(node.func)))
    if isinstance(node, ast.If):
        return bool(re.search(r"TYPE_CHECKING|isEnabledFor|verbose|debug|\blog\b", ast.unparse(node.test)))
    return False


def _only_raises(statement: ast.If) -> bool:
    return all(isinstance(inner, ast.Raise) or _says(inner) for inner in statement.body)


def _binds(test: ast.expr) -> bool:
    return any(isinstance(node, ast.NamedExpr) for node in ast.walk(test))


def _can_go(statement: ast.stmt) -> bool:
    """A statement whose absence leaves no name unbound."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in statement.targets)
    return isinstance(statement, (ast.AugAssign, ast.Continue))


def _compares(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS


def _swap_comparison(node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)
    node.ops = [COMPARISONS[type(node.ops[0])]()]


def _swap_connective(node: ast.AST) -> None:
    assert isinstance(node, ast.BoolOp)
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _swap_sign(node: ast.AST) -> None:
    assert isinstance(node, ast.BinOp)
    node.op = ARITHMETIC[type(node.op)]()


def _other_constant(node: ast.AST) -> None:
    assert isinstance(node, ast.Constant)
    node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1  # type: ignore[operator]


STATEMENTS = ("never", "always", "dropped")

# name → which expressions, and how one is changed in place (`not`: its operand takes its place)
CHANGES: dict[str, tuple[Callable[[ast.expr], bool], Edit | None]] = {
    "comparison": (_compares, _swap_comparison),
    "and-or": (lambda node: isinstance(node, ast.BoolOp), _swap_connective),
    "sign": (lambda node: isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _text(node), _swap_sign),
    "not": (lambda node: isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not), None),
    "constant": (lambda node: isinstance(node, ast.Constant) and type(node.value) in (bool, int), _other_constant),
}


def _text(node: ast.BinOp) -> bool:
    return any(
        isinstance(inner, (ast.JoinedStr, ast.List))
        or (isinstance(inner, ast.Constant) and isinstance(inner.value, str))
        for inner in ast.walk(node)
    )


# ------------------------------------------------------------------------------------------------- applying


def by_name(name: str) -> dict[str, ast.Module]:
    """A mutant by its name: its file and that file's tree with the change."""
    words = name.rsplit(":", 3)
    if len(words) != 4 or not words[1].isdigit() or not words[2].isdigit() or words[3] not in (*STATEMENTS, *CHANGES):
        raise UsageError(f"{name} is no mutant: it is FILE:LINE:COLUMN:CHANGE, as `mutants run` prints it")
    if words[0] not in sources.files():
        raise UsageError(
            f"{words[0]} is no file of a compiler: the name begins with one of torch's, as `mutants run` prints it"
        )
    return {words[0]: mutated(words[0], int(words[1]), int(words[2]), words[3])}


def mutated(file: str, line: int, column: int, change: str) -> ast.Module:
    """The tree of the file with the change."""
    tree = recompile.parsed(file)
    changer = _Changer(line, column, change)
    changer.visit(tree)
    if not changer.done:
        raise UsageError(f"nothing to change at {file}:{line}:{column} ({change})")
    return ast.fix_missing_locations(tree)


class _Changer(ast.NodeTransformer):
    def __init__(self, line: int, column: int, change: str) -> None:
        self.at, self.change, self.done = (line, column), change, False

    def visit(self, node: ast.AST) -> ast.AST:
        if (
            not self.done
            and (getattr(node, "lineno", 0), getattr(node, "col_offset", -1)) == self.at
            and self._fits(node)
        ):
            self.done = True
            return self._changed(node)
        return self.generic_visit(node)

    def _fits(self, node: ast.AST) -> bool:
        if self.change in ("never", "always"):
            return isinstance(node, ast.If)
        if self.change == "dropped":
            return isinstance(node, ast.stmt) and _can_go(node)
        return isinstance(node, ast.expr) and CHANGES[self.change][0](node)

    def _changed(self, node: ast.AST) -> ast.AST:
        if self.change in ("never", "always"):
            assert isinstance(node, ast.If)
            node.test = ast.copy_location(ast.Constant(self.change == "always"), node.test)
            return node
        if self.change == "dropped":
            return ast.copy_location(ast.Pass(), node)
        edit = CHANGES[self.change][1]
        if edit is None:
            assert isinstance(node, ast.UnaryOp)
            return node.operand
        edit(node)
        return node
