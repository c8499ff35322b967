"""A graph as a file that shows the defect by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import fx

from conformance.errors import UsageError
from conformance.repro import Report, docstring, tensor_literal, wrapped
from conformance.torch_seam import WRAP

HEAD = """{docstring}

{imports}

{prepared}class Repro(torch.nn.Module):
{body}

def inputs():
    torch.manual_seed(0)
{inputs}

"""

CHECKS = {
    "value": """def main():
    module = Repro()
    eager, outputs = module(*inputs()), {compile}(module)(*inputs())
    try:
        exact = module.double()(*[x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs()])
    except RuntimeError:  # a dtype is written into the graph
        exact = eager
    flat = torch.utils._pytree.tree_leaves
    for index, (got, want, best) in enumerate(zip(flat(outputs), flat(eager), flat(exact), strict=True)):
        if got.dtype != want.dtype or got.shape != want.shape or got.stride() != want.stride():
            print(f"output {{index}}: {{got.dtype}} {{tuple(got.shape)}} {{got.stride()}}")
            print(f"in eager: {{want.dtype}} {{tuple(want.shape)}} {{want.stride()}}")
            return 1
        if not want.is_floating_point():
            if not torch.equal(got, want):
                print(f"output {{index}}: {{got.tolist()}}")
                print(f"in eager: {{want.tolist()}}")
                return 1
            continue
        odd = ~(torch.isfinite(want) & torch.isfinite(best))
        if not torch.allclose(got[odd], want[odd], equal_nan=True):
            print(f"output {{index}}: {{got[odd].tolist()}} where eager gives {{want[odd].tolist()}}")
            return 1
        error, own, size = (max(x[~odd].double().abs().tolist(), default=0.0) for x in (got - best, want - best, best))
        if not error <= 4 * own + 1e-5 + 2 * torch.finfo(want.dtype).eps * size:
            print(f"output {{index}}: error {{error:.3g}} against fp64, eager's own is {{own:.3g}}")
            return 1
    print("the defect is gone")
    return 0
""",
    "mutation": """def main():
    module = Repro()
    left, right = inputs(), inputs()
    module(*left)
    {compile}(module)(*right)
    for index, (want, got) in enumerate(zip(left, right, strict=True)):
        if torch.is_tensor(want) and not torch.allclose(got, want, rtol=1e-3, atol=1e-4):
            print(f"input {{index}} is not what eager left in it")
            return 1
    print("the defect is gone")
    return 0
""",
    "crash": """def main():
    module = Repro()
    module(*inputs())
    try:
        {compile}(module)(*inputs())
    except Exception as error:
        print(f"{{type(error).__name__}}: {{str(error).splitlines()[0]}}")
        return 1
    print("the defect is gone")
    return 0
""",
}
TAIL = """

if __name__ == "__main__":
    try:
        code = main()
    except Exception:
        traceback.print_exc()
        code = 3  # this file does not run here: nothing is said of the defect
    sys.exit(code)
"""
CHECK_OF_KIND = {"lost_mutation": "mutation", "crash": "crash"}


def write(
    path: Path,
    gm: fx.GraphModule,
    inputs: tuple[Any, ...],
    report: Report,
    kind: str,
    entry: tuple[str, str],
    transform: str = "",
) -> None:
    """A script that compiles the graph with `entry`, see `HasRepro`, and exits 1 while it is not what eager gives.
    `transform` is the one at fault, where the entry wants to know."""
    compiler, prepared = entry
    check = CHECKS[CHECK_OF_KIND.get(kind, "value")]
    check = check.replace("{compile}", compiler).replace("{{", "{").replace("}}", "}")
    body, lines = _module_text(gm)
    wanted, prepared = _imports_apart(prepared.replace("{transform}", transform))
    head = HEAD.format(
        docstring=docstring(report, report.got),
        imports=_sorted_imports(["import sys", "import traceback", "import torch", *lines, *wanted]),
        prepared=prepared,
        body=body,
        inputs=_inputs_text(inputs),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + check + TAIL, encoding="utf-8")


def _imports_apart(text: str) -> tuple[list[str], str]:
    """The imports that a door begins with, and the rest of it."""
    lines = text.strip("\n").split("\n") if text else []
    count = next((n for n, line in enumerate(lines) if line and not line.startswith(("import ", "from "))), len(lines))
    rest = "\n".join(lines[count:])
    return [line for line in lines[:count] if line], f"{rest}\n\n\n" if rest else ""


def _sorted_imports(lines: list[str]) -> str:
    """As everybody sorts them: the standard library, then the rest; names that are no imports last."""
    given = [line for line in dict.fromkeys(lines) if line.startswith(("import ", "from "))]
    own = [line for line in given if line.split()[1].split(".")[0] in sys.stdlib_module_names]
    blocks = [
        sorted(block, key=lambda line: (line.startswith("from"), line))
        for block in (own, [x for x in given if x not in own])
    ]
    blocks.append([line for line in dict.fromkeys(lines) if line not in given])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _module_text(gm: fx.GraphModule) -> tuple[str, list[str]]:
    """The graph as Python, with whatever parameters it holds."""
    for node in gm.graph.nodes:
        node.type = None  # an annotation may name what only the user's file knows
    code = gm.graph.python_code("self")
    lines = [line for line in code.src.strip("\n").splitlines() if line.strip() and not line.startswith(WRAP)]
    lines = [re.sub(r";  (\w+ = )+None$", "", line) for line in lines]  # memory is no concern here
    held = sorted({n.target for n in gm.graph.nodes if n.op == "get_attr"})
    made = []
    for name in held:
        value = gm.get_parameter(name) if name in dict(gm.named_parameters()) else getattr(gm, name)
        made.append(f"        self.register_buffer({name!r}, {_tensor_text(value)})")
    init = ["    def __init__(self):", "        super().__init__()", *made, ""] if made else []
    imports = []
    words = set(re.findall(r"\w+", "\n".join([*made, *lines])))
    for name, value in sorted((name, value) for name, value in code.globals.items() if name in words):
        module = getattr(value, "__module__", None)
        if name in ("torch", "device", "inf", "nan") or name.startswith("_operator"):
            known = {"device": "from torch import device", "inf": "inf = float('inf')", "nan": "nan = float('nan')"}
            imports += [known[name]] if name in known else ["import _operator"] if name.startswith("_operator") else []
        elif isinstance(value, ModuleType):
            imports.append(f"import {value.__name__} as {name}")
        elif name == "NoneType":
            imports.append("NoneType = type(None)")
        elif module and hasattr(value, "__qualname__"):
            imports.append(f"from {module} import {value.__qualname__} as {name}")
    return "\n".join([*init, *("    " + line for line in lines)]) + "\n", imports


def _inputs_text(inputs: tuple[Any, ...]) -> str:
    parts = [
        wrapped(f"        {_tensor_text(x) if isinstance(x, torch.Tensor) else repr(x)},", indent=" " * 12)
        for x in inputs
    ]
    return "\n".join(["    return (", *parts, "    )", ""])


def _tensor_text(value: torch.Tensor) -> str:
    """Small tensors with their values, larger ones made from the seed."""
    if value.numel() <= 64 or not value.is_floating_point():
        text = tensor_literal(value)
    else:
        text = f"torch.randn({tuple(value.shape)}, dtype=torch.float64).to({value.dtype})"
    if not value.is_contiguous():
        text = f"torch.empty_strided({tuple(value.shape)}, {tuple(value.stride())}, dtype={value.dtype}).copy_({text})"
    return text


def verify(repro: Path, timeout: float = 300.0) -> tuple[int, str]:
    """Run a repro in a fresh process (with the plugins of this run, so that a seeded fault is there too)."""
    code = "import runpy, sys; sys.argv = [sys.argv[1]]; "
    code += (
        "from conformance.plugins import load_plugins; load_plugins(); runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    plain = not os.environ.get("CONFORMANCE_PLUGINS")
    command = [sys.executable, str(repro)] if plain else [sys.executable, "-c", code, str(repro)]
    root = str(Path(__file__).resolve().parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        raise UsageError(f"{repro} did not end within {timeout:.0f} s in a fresh process") from None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return done.returncode, lines[-1] if lines else ""
