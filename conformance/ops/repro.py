"""A script for each cause of a sweep: one call of the operator in eager and compiled. It needs torch alone and exits 1 while the two
differ. Only what was seen to do so in a fresh interpreter is handed over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from conformance.errors import first_line
from conformance.ops.call import Call, Scope
from conformance.ops.causes import Cause
from conformance.ops.form import ERRORS, calls_of, error_calls
from conformance.ops.operator import Operator, operators
from conformance.ops.seam import home_of
from conformance.ops.words import operator_and_dtype, script_stem
from conformance.processes import in_fork
from conformance.repro import Report, docstring, tensor_literal
from conformance.verdict import Kind

SAMPLES = (3, 1, 24)  # how many samples the sweep may have been asked for, the usual number first
SPELLED_NUMBERS = 256  # a tensor of more elements is filled, not written out
SECONDS = 180.0
NO_VALUES = {
    Kind.WRONG_METADATA.value,
    Kind.LOST_ALIAS.value,
    Kind.CRASH.value,
    Kind.TIMEOUT.value,
    Kind.LOST_VALIDATION.value,
}

COMPARED = """
def leaves(result):
    return [x for part in result for x in leaves(part)] if isinstance(result, (list, tuple)) else [result]


def about(x):
    if not isinstance(x, torch.Tensor):
        return repr(x)
    strides = [s for s, size in zip(x.stride(), x.shape) if size > 1] if x.numel() else []
    return f"{x.dtype} {list(x.shape)} strides {strides} requires_grad={x.requires_grad}"


def shares(x, args):
    places = [a.untyped_storage().data_ptr() for a in args]
    return isinstance(x, torch.Tensor) and x.numel() and x.untyped_storage().data_ptr() in places


def outcome(g):
    said = []
    for args in inputs():
        torch.manual_seed(0)
        try:
            result = g(*args)
        except Exception as error:
            print(f"    raises {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160])
            said.append("raises")
            continue
        said += [type(result).__name__, *leaves(result), *args]
        said += [f"output {i} shares memory with an input" for i, x in enumerate(leaves(result)) if shares(x, args)]
@grad@    return said


@same@
print("torch", torch.__version__)
print("eager:")
eager = outcome(f)
print("compiled:")
compiled = outcome(torch.compile(f))
wrong = len(eager) != len(compiled)
if wrong:
    print("eager:", [x for x in eager if isinstance(x, str)], "compiled:", [x for x in compiled if isinstance(x, str)])
for a, b in zip(eager, compiled):
    if not same(a, b):
        wrong = True
        print(f"eager:    {about(a)}\\n{a}\\ncompiled: {about(b)}\\n{b}")
sys.exit(wrong)
"""
GRAD = """        losses = [x.sum() for x in leaves(result) if isinstance(x, torch.Tensor) and x.requires_grad]
        if losses:
            sum(losses).abs().backward()
        said += [x.grad for x in args]
"""


SAME = {  # by whether values count, and signs of zeros
    (False, False): """
def same(a, b):
    return about(a) == about(b)

""",
    (True, False): """
def same(a, b):
    if about(a) != about(b) or not isinstance(a, torch.Tensor):
        return about(a) == about(b)
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
    except AssertionError:
        return False
    return True

""",
    (True, True): """
def same(a, b):
    if about(a) != about(b) or not isinstance(a, torch.Tensor):
        return about(a) == about(b)
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
    except AssertionError:
        return False
    return not a.is_floating_point() or torch.equal(a.signbit() & (a == 0), b.signbit() & (b == 0))

""",
}


class NoRepro(Exception):
    """Why there is no script."""


@dataclass(frozen=True)
class Repro:
    """path: of the script, where one exits 1. why: where there is none."""

    cause: Cause
    path: Path | None = None
    why: str = ""


def repros(causes: list[Cause], folder: Path) -> Iterator[Repro]:
    """A script for each cause, in this folder, as each is made."""
    folder.mkdir(parents=True, exist_ok=True)
    known = operators()
    taken: dict[str, int] = {}
    for cause in causes:
        try:
            operator, call = example(cause, known)
            stem = "ops_" + script_stem(operator.name, cause.kind)
            taken[stem] = taken.get(stem, 0) + 1
            path = folder / (f"{stem}.py" if taken[stem] == 1 else f"{stem}_{taken[stem]}.py")
            written(cause, operator, call, path)
            yield Repro(cause, path)
        except NoRepro as why:
            yield Repro(cause, why=str(why))


def example(cause: Cause, known: dict[str, Operator]) -> tuple[Operator, Call]:
    """The call that the cause was told with."""
    name, dtype = operator_and_dtype(cause.cells[0].split("/", 3)[3]) or ("", "")
    if name not in known:
        raise NoRepro(f"this torch's database has no operator {name}")
    form, rest = cause.example.partition(", ")[0], cause.example.partition(" calls: ")[2]
    for count in SAMPLES:
        for call in _calls(known[name], dtype, form, count):
            if rest.startswith(call.sentence() + ":"):
                return known[name], call
    raise NoRepro("the call is not found again")


def _calls(operator: Operator, dtype: str, form: str, count: int) -> Iterator[Call]:
    try:
        yield from error_calls(operator) if form == ERRORS else calls_of(operator, dtype, (form,), count)
    except Exception as error:
        raise NoRepro(f"the database cannot make its samples: {first_line(error)}") from error


def written(cause: Cause, operator: Operator, call: Call, path: Path) -> None:
    """Write the script with the plainest tensors that show the defect."""
    from conformance.fuzz.program_finding import exit_code

    before = ""
    for spell in (_ones, _counting, _literal):
        try:
            text = script(cause, operator, call, spell)
        except NoRepro as why:
            before = str(why)
            continue
        path.write_text(text, encoding="utf-8")
        if in_fork(lambda: exit_code(str(path)), SECONDS) not in (0, 70) and alone(path) == 1:
            return
    path.unlink(missing_ok=True)
    raise NoRepro(before or "no script of it exits 1 (the sweep's tolerances are tighter than torch.testing's)")


def alone(path: Path) -> int:
    """What the script exits with in a fresh interpreter."""
    try:
        return subprocess.run([sys.executable, str(path)], capture_output=True, timeout=SECONDS).returncode
    except subprocess.TimeoutExpired:
        return -1


def script(cause: Cause, operator: Operator, call: Call, spell: Callable[[torch.Tensor, int], str]) -> str:
    """The call as a program; `spell` writes the elements of a tensor's storage."""
    scope = Scope()
    names = [f"t{index}" for index in range(len(call.tensors))]
    line = call.text(names, scope)
    rest = {name: value for name, value in scope.values.items() if name not in ("torch", "inf", "nan")}
    lines = ["import sys", "", "import torch", ""]
    if "inf" in line or "nan" in line:
        lines += ["from math import inf, nan", ""]
    if callable(call.function) and list(rest) == ["op0"]:
        module, database = home_of(operator.info)
        lines += [f"from {module} import {database}", ""]
        lines += [
            f"op0 = next(op for op in {database} if (op.name, op.variant_test_name) == {_identity(operator)})",
            "",
        ]
    elif rest:
        raise NoRepro("an argument cannot be written down")
    rounds = [tensors for tensors in (call.tensors, call.again) if tensors or tensors is call.tensors]
    given = ",\n        ".join(f"({''.join(_spelled(t, spell, call.grad) + ', ' for t in one)})" for one in rounds)
    lines += ["", f"def f({', '.join(names)}):", f"    return {line}", "", "", "def inputs():"]
    lines += ["    return [", f"        {given},", "    ]", ""]
    values = cause.kind not in NO_VALUES
    same = SAME[values, values and call.key.form == "special"]
    compared = COMPARED.replace("@grad@", GRAD if call.grad else "").replace("@same@\n", same.lstrip("\n"))
    title = f"{operator.name}, {cause.kind}: {cause.example.partition(' calls: ')[2]}"
    report = Report(title, cause.stage, "what eager gives", "", {"torch": str(torch.__version__)})
    others = f"So do: {', '.join(list(cause.operators)[1:8])}." if len(cause.operators) > 1 else ""
    dtypes = f"Dtypes: {', '.join(cause.dtypes)}."
    more = [text for text in (f"Found by `conformance ops` (form {call.key.form}).", dtypes, others) if text]
    return docstring(report, *more) + "\n\n" + "\n".join(lines) + compared


def _identity(operator: Operator) -> str:
    return repr((operator.info.name, operator.info.variant_test_name))


def _spelled(tensor: torch.Tensor, spell: Callable[[torch.Tensor, int], str], grad: bool) -> str:
    """The tensor as Python: what its storage holds, and how it lies there."""
    size, stride, offset = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()
    places = offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if tensor.numel() else 0
    text = spell(tensor, int(places))
    plain = tensor.is_contiguous() and not offset
    text += f".reshape({size})" if plain else f".as_strided({size}, {stride}, {offset})"
    return text + (".requires_grad_()" if grad and (tensor.is_floating_point() or tensor.is_complex()) else "")


def _ones(tensor: torch.Tensor, places: int) -> str:
    return f"torch.ones({places}, dtype={tensor.dtype})"


def _counting(tensor: torch.Tensor, places: int) -> str:
    count = f"torch.arange({places})"
    return f"({count} % 2 == 0)" if tensor.dtype == torch.bool else f"({count} % 7).to({tensor.dtype})"


def _literal(tensor: torch.Tensor, places: int) -> str:
    if places > SPELLED_NUMBERS:
        raise NoRepro(f"it needs the values of a tensor of {places} elements")
    return tensor_literal(tensor.detach().as_strided((places,), (1,), 0))
