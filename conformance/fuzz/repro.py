"""A script that needs the compiler and nothing else, and ends with 1 for as long as the defect is there."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import Any

import torch

from conformance import backends
from conformance.backends.base import HasRepro
from conformance.fuzz.example import Call, Example
from conformance.fuzz.finding import Finding
from conformance.fuzz.home import home
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph, parameter, weight
from conformance.repro import Report, docstring, tensor_literal

DECLARED = {
    "dims",
    "inputs",
    "contract",
    "needs",
    "steps",
}  # what a micrograph says of itself, and a plain module need not
SMALL = 64  # storages up to this size are written out


def write_repro(finding: Finding, folder: Path | None = None) -> Path:
    folder = folder or home() / "repros"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"fuzz_{finding.example.micrograph.replace('.', '_')}_{finding.id}.py"
    file.write_text(script(finding))
    return file


def script(finding: Finding) -> str:
    """The finding as a script that exits 1 while a call is not as eager."""
    example = finding.example
    base = example.base()
    device = backends.get(finding.backend).repro_device or ("cpu" if finding.target == "cpu" else "cuda")
    name, defined = _entry(finding.backend)
    return TEMPLATE.format(
        docstring=docstring(_report(finding), *_notes(finding)),
        module=module_source(base),
        name=base.__name__,
        dtype=f".to(torch.{example.calls[0].dtype})" if example.calls[0].dtype else "",
        train=any(isinstance(spec, Tensor) and spec.grad for spec in base.inputs),
        calls="\n".join(_call(example, base, call, device) for call in example.calls),
        steps=base.steps,
        device=repr(device),
        defined=f"\n{defined.strip()}\n\n" if defined else "",
        entry=name,
    )


def _report(finding: Finding) -> Report:
    where = f"{finding.stage}/{finding.backend}/{finding.target}"
    versions = {name: text for name, text in finding.versions.items() if name in ("torch", "python", "machine")}
    return Report(
        f"{where}: {finding.kind}: {finding.detail}", finding.stage, "what eager gives", finding.detail, versions
    )


def _notes(finding: Finding) -> list[str]:
    found = "Found by fuzzing."
    return [f"{found[:-1]} for {finding.target} without a GPU; this needs one." if "sm_" in finding.target else found]


def _entry(name: str) -> tuple[str, str]:
    """The function that compiles a module, and its text: the backend's own, where it has one."""
    backend = backends.get(name)
    entry = backend.repro_entry("") if isinstance(backend, HasRepro) else None
    return entry or ("torch.compile", "")


TEMPLATE = '''{docstring}

import sys

import torch
from torch import nn  # noqa: F401
from torch.nn import functional as F  # noqa: F401

{module}

def calls():
    """The inputs of one call after the other, on one compiled module."""
{calls}


def inputs():
    """Those of the first call, which it is compiled with."""
    return next(calls())

{defined}
def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value.detach().clone()]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def module():
    torch.manual_seed(0)
    return {name}(){dtype}.train({train}).to({device})


eager, program = module(), None
wrong = False
for number, (given, same) in enumerate(zip(calls(), calls()), 1):
    results = []
    for which, values in (("eager", given), ("compiled", same)):
        torch.manual_seed(1)
        try:
            if which == "compiled" and program is None:
                program = {entry}(module())
            for _ in range({steps}):
                out = eager(*values) if which == "eager" else program(*values)
            results.append((tensors(out), [x.detach().clone() for x in values if isinstance(x, torch.Tensor)]))
        except Exception as error:
            results.append(f"{{type(error).__name__}}: {{str(error)[:500]}}")
    try:
        torch.testing.assert_close(results[1], results[0], equal_nan=True, check_stride=True)
        print(f"call {{number}}: as eager")
    except (AssertionError, TypeError) as error:
        wrong = True
        print(f"call {{number}}: not as eager: {{error}}\\neager: {{results[0]}}\\ncompiled: {{results[1]}}")
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)
'''


def _call(example: Example, base: type[Micrograph], call: Call, device: str) -> str:
    """Storage by storage, so that sharing stays; drawn from one seed, so that eager and compiled get the same numbers."""
    moved = "" if device == "cpu" else f".to({device!r})"
    lines, names, storages = [], [], {}
    for index, (spec, value) in enumerate(zip(base.inputs, call.inputs(base), strict=True)):
        if not isinstance(value, torch.Tensor):
            names.append(repr(value))
            continue
        given = call.given[index]
        if given.same and given.shares is not None:
            names.append(f"x{given.shares}")
            continue
        address = value.untyped_storage().data_ptr() or -1 - index
        if address not in storages:
            storages[address] = f"s{index}"
            lines.append(f"    s{index} = {_storage(value)}{moved}")
        place = f"{tuple(value.shape)}, {value.stride()}, {value.storage_offset()}"
        lines.append(f"    x{index} = torch.as_strided({storages[address]}, {place})")
        if isinstance(spec, Tensor) and spec.grad:
            lines[-1] += ".detach().requires_grad_()"
        unbacked = _named(spec, example.unbacked)
        lines += [f"    torch._dynamo.decorators.mark_unbacked(x{index}, {dim})" for dim in unbacked]
        dynamic = [dim for dim in _named(spec, example.dynamic) if dim not in unbacked and value.shape[dim] > 1]
        lines += [f"    torch._dynamo.mark_dynamic(x{index}, {dim})" for dim in dynamic]
        names.append(f"x{index}")
    seed = ["    torch.manual_seed(2)"] if any("torch.rand" in line for line in lines) else []
    return "\n".join([*seed, *lines, f"    yield ({', '.join(names)},)"])


def _named(spec: Any, dims: tuple[str, ...]) -> list[int]:
    import re

    return [i for i, name in enumerate(spec.names()) if {*re.findall(r"[a-z]\w*", name)} & {*dims}]


def _storage(value: torch.Tensor) -> str:
    """Written out where it is small; else random numbers, which shrinking has found to matter less than the shape."""
    storage = value.untyped_storage()
    flat = torch.empty(0, dtype=value.dtype).set_(storage, 0, (storage.nbytes() // value.element_size(),), (1,))
    if flat.numel() <= SMALL:
        return tensor_literal(flat)
    if value.is_floating_point():
        return f"torch.randn({flat.numel()}).to({value.dtype})"
    top = max(int(flat.max()), 1)
    return f"torch.randint(0, {top} + 1, ({flat.numel()},)).to({value.dtype})"


# ------------------------------------------------------------------------------------------------ module


def module_source(base: type[Micrograph]) -> str:
    """The class as a plain nn.Module, with whatever its file defines that it needs."""
    tree = ast.parse(Path(inspect.getfile(base)).read_text())
    named = {name: node for node in tree.body for name in _defines(node)}
    needed: list[ast.stmt] = []

    def need(node: ast.stmt) -> None:
        if node in needed:
            return
        for name in [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]:
            if name in named and named[name] is not node:
                need(named[name])
        needed.append(node)

    # Ops are registered by statements that define no name of their own.
    for node in tree.body:
        if isinstance(node, ast.If) and "torch.ops" in ast.unparse(node) and "torch.ops" in inspect.getsource(base):
            need(node)
    need(_plain(named[base.__name__]))
    helpers = [inspect.getsource(f) for f in (parameter, weight) if any(f.__name__ in ast.unparse(n) for n in needed)]
    lines = [ast.unparse(node) for node in needed if not _of_conformance(node)]
    return "\n\n".join([*helpers, *lines]) + "\n"


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign):
        return [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    return []


def _of_conformance(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("conformance", "__future__"))


def _plain(node: ast.stmt) -> ast.ClassDef:
    assert isinstance(node, ast.ClassDef)
    body = [
        s
        for s in node.body
        if not (isinstance(s, ast.Assign) and {n.id for n in s.targets if isinstance(n, ast.Name)} & DECLARED)
    ]
    bases: list[ast.expr] = [ast.parse("nn.Module", mode="eval").body]
    return ast.ClassDef(node.name, bases, [], body, [], **({"type_params": []} if sys.version_info >= (3, 12) else {}))  # type: ignore[arg-type]
