"""Private names of the compilers stand in the tables of the seams. Read from the source of the whole package: nothing
outside the seams imports, reads, sets or patches one."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance

PACKAGE = Path(conformance.__file__).parent
SEAMS = {
    "fuzz/seam.py",
    "torch_seam.py",
    "backends/inductor/seam.py",
    "backends/inductor/triage/seam.py",
    "backends/torch_tensorrt/seam.py",
    "backends/autodeploy/seam.py",
    "headless/seam.py",
    "ops/seam.py",
    "passes/seam.py",
    "upstream/rungs.py",  # runs without this package inside the interpreter under test: it has its own table
}
# Files that may name them, and why.
OTHERS = {
    "triage/against_eager.py": "copied into a script that needs nothing of this project",
    "backends/inductor/repro.py": "text that goes into repros",
    "upstream/failure.py": "modules as error messages name them; runs without this package",
}
FAULTS = "seeded/"  # a fault is a change to the compiler itself; `fault.find` says so when its name is gone
PATCHING = {"seam.py", "backends/inductor/guard_probes.py"}  # the machinery of seams; attributes of the user's module
COMPILERS = {"torch", "triton", "torch_tensorrt", "tensorrt", "tensorrt_llm"}
DOTTED = re.compile(rf"(?:{'|'.join(sorted(COMPILERS))})(?:[.:]\w+)*[.:]_\w+(?:[.:]\w+)*")
NAMED_TUPLE = {"_replace", "_asdict", "_fields"}
PYTESTS = {"_tw", "_do_configure"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def dotted(node: ast.expr) -> list[str]:
    """`torch.cuda._sleep` → its parts; empty where it does not begin with a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def imported(tree: ast.Module) -> Iterator[tuple[int, str, list[str]]]:
    """Every import: line, the name that it binds, and what that stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name.split(".")[0], alias.name.split(".")
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name, [*node.module.split("."), alias.name]


def own_names(tree: ast.AST) -> set[str]:
    """Private names that code defines: functions, variables, and attributes that it sets."""
    found = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    found |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    found |= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and dotted(node)[:1] == ["self"]
    }
    return {name for name in found if is_private(name)}


def private_uses(source: str, own: set[str]) -> Iterator[str]:
    """Uses of a compiler's private names, as `line: what`."""
    tree = ast.parse(source)
    bound = {}
    for line, name, path in imported(tree):
        if path[0] in COMPILERS:
            bound[name] = path if name == path[-1] or (len(path) > 1 and name not in COMPILERS) else [name]
            if any(map(is_private, path)):
                yield f"{line}: import of {'.'.join(path)}"
    modules = {name for _, name, path in imported(tree) if path[0] in sys.stdlib_module_names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            parts = dotted(node)
            known = (parts[:1] in (["self"], ["cls"]) and len(parts) == 2) or node.attr in own | NAMED_TUPLE | PYTESTS
            operator = parts[:1] == ["aten"] or parts[:2] == ["torch", "ops"]
            if (parts and parts[0] in bound and not operator) or (
                not known and not operator and parts[:1] not in [[name] for name in modules]
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            yield f"{node.lineno}: the name {node.value}"
        elif isinstance(node, ast.Call) and dotted(node.func) in (["getattr"], ["setattr"], ["hasattr"], ["delattr"]):
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
            if isinstance(name, str) and is_private(name) and name not in own:
                yield f"{node.lineno}: {ast.unparse(node)}"


def patches(source: str) -> Iterator[str]:
    """Where something is patched: by `unittest.mock`, or by assigning to an attribute of a compiler's module."""
    tree = ast.parse(source)
    names = {name for _, name, path in imported(tree) if path[0] in COMPILERS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in (["patch"], ["patch", "object"], ["mock", "patch"]):
            yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            parts = dotted(node)
            if parts and parts[0] in names:
                yield f"{node.lineno}: {'.'.join(parts)} is assigned to"


def sources() -> dict[str, str]:
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}


def test_no_private_name_is_used_outside_the_seams() -> None:
    texts = sources()
    own = set().union(*(own_names(ast.parse(text)) for text in texts.values()))
    found = {
        f"{file}:{use}"
        for file, text in texts.items()
        if file not in SEAMS | {*OTHERS} and not file.startswith(FAULTS)
        for use in private_uses(text, own)
    }
    assert found == set()


def test_nothing_is_patched_outside_the_seams() -> None:
    found = {
        f"{file}:{use}"
        for file, text in sources().items()
        if file not in SEAMS | PATCHING | {*OTHERS} and not file.startswith(FAULTS)
        for use in patches(text)
    }
    assert found == set()


def test_every_exception_is_a_file_that_needs_it() -> None:
    texts = sources()
    for file in OTHERS:
        assert list(private_uses(texts[file], set())), f"{file} names nothing private any more: take it off the list"
    for file in PATCHING:
        assert list(patches(texts[file])), f"{file} patches nothing any more: take it off the list"


@pytest.mark.parametrize(
    "source",
    [
        "import torch._inductor.config",
        "from torch._inductor import ir",
        "from torch.utils import _pytree as pytree",
        "import torch\ntorch.cuda._sleep(1)",
        "import torch\nx = torch._debug_has_internal_overlap",
        "from torch import cuda\ncuda._sleep(1)",
        "import torch._dynamo as dynamo",
        "def f(tuner): return tuner._interpret_args_grid(1)",
        "def f(x): return x.untyped_storage()._cdata",
        "def f(x): return getattr(x, '_schema', None)",
        "NAME = 'torch._inductor.scheduler:Scheduler.codegen'",
        "NAMES = {'tensorrt_llm._torch.auto_deploy'}",
    ],
)
def test_a_private_name_is_seen(source: str) -> None:
    assert len(list(private_uses(source, set()))) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "from unittest.mock import patch\nimport torch\npatch.object(torch.cuda, 'is_available', bool)",
        "import torch\ntorch.cuda.is_available = bool",
        "from torch import cuda\ncuda.is_available = bool",
    ],
)
def test_a_patch_is_seen(source: str) -> None:
    assert len(list(patches(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.ops.aten._softmax.default",
        "import os\nos._exit(1)",
        "class A:\n    def f(self): return self._own",
        '"""Uses torch._inductor.config in a sentence."""',
        "def f(point): return point._replace(x=1)",
    ],
)
def test_what_is_not_a_compilers_private_name_is_left_alone(source: str) -> None:
    assert list(private_uses(source, set())) == []
