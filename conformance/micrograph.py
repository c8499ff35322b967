"""A micrograph: a module of a few ops, the inputs it takes, and the contract it has with every compiler.

    class AddRMSNorm(Micrograph):
        '''Residual add, then RMSNorm: the pair that every decoder block repeats.'''

        dims = {"b": 2, "s": 8, "h": 64}
        inputs = (Tensor("b s h"), Tensor("b s h"))
        contract = Contract(fusion=Fusion(kernels=1))

        def __init__(self) -> None:
            super().__init__()
            self.weight = parameter(64)

        def forward(self, x, residual): ...

The file names the family and the class the micrograph: `norm.add_rmsnorm`.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from conformance.contract import Contract
from conformance.inputs import Input, Tensor, Value, make_inputs


class Micrograph(nn.Module):
    """Subclass it: `inputs`, `contract`, `forward`; `dims` and `__init__` where needed.

    steps     calls that belong together (a cache that is filled step by step)
    upstream  the public reports that it stands for: `("pytorch#198094",)`; which releases have the defect is measured
    options   what `torch.compile` is given: `{"dynamic": True}`; a backend that is no `torch.compile` backend leaves them out
    settings  settings of torch's compilers under which it is compiled, where a report needs them: `{"functorch.activation_memory_budget": 0.0}`
    backends  the compilers that a run gives it to, where it stands for a report of one compiler: `("torch_tensorrt",)`; empty: all of them
    """

    dims: ClassVar[Mapping[str, int]] = {}
    inputs: ClassVar[tuple[Input, ...]] = ()
    contract: ClassVar[Contract]
    steps: ClassVar[int] = 1
    upstream: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Any]] = {}
    settings: ClassVar[Mapping[str, Any]] = {}
    backends: ClassVar[tuple[str, ...]] = ()

    def play(self, run: Any, *inputs: Any) -> Any:
        """What a caller does with the program (see `conformance.scenario`). All that it returns is compared. By default, one call."""
        return run(*inputs)

    @classmethod
    def has_scenario(cls) -> bool:
        """Is it played, with a module and inputs of its own each time? Or called again and again with other values and sizes?"""
        values = any(isinstance(spec, Value) for spec in cls.inputs)
        return cls.play is not Micrograph.play or values or cls.contract.runtime.raises

    @classmethod
    def name(cls) -> str:
        return f"{cls.family()}.{snake(cls.__name__)}"

    @classmethod
    def family(cls) -> str:
        return cls.__module__.split(".", 1)[-1]

    @classmethod
    def summary(cls) -> str:
        return (inspect.getdoc(cls) or "").split("\n")[0]

    @classmethod
    def digest(cls) -> str:
        """Changes when what the micrograph says changes: its class, and what that uses of the definitions in its file."""
        return _digest(Path(inspect.getfile(cls)).read_text("utf-8"), cls.__name__)

    @classmethod
    def build(cls, seed: int = 0) -> Micrograph:
        """A fresh module, the same every time."""
        with torch.random.fork_rng(devices=[]):
            # Modules are made on the CPU; `torch.manual_seed` would draw a traceback for the GPU.
            torch.default_generator.manual_seed(seed)
            module = cls()
        return module.train(any(isinstance(spec, Tensor) and spec.grad for spec in cls.inputs))

    @classmethod
    def example(cls, seed: int = 0, dims: Mapping[str, int] | None = None, device: str = "cpu") -> tuple[Any, ...]:
        """Inputs as the specs say: the same for the same seed, other values for another."""
        return make_inputs(cls.inputs, {**cls.dims, **(dims or {})}, seed, device)


@cache
def _definitions(text: str) -> dict[str, ast.stmt]:
    """What a file defines at its top level, by name. Imports are not among it: they say where names come from, not what is computed."""
    found: dict[str, ast.stmt] = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= {
                node.id: statement for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
            }
    return found


@cache
def _digest(text: str, name: str) -> str:
    known, wanted, used = _definitions(text), [name], []
    while wanted:
        if (one := wanted.pop()) in known and one not in used:
            used.append(one)
            wanted += [node.id for node in ast.walk(known[one]) if isinstance(node, ast.Name)]
    if name not in used:  # a class that was made and not written
        return hashlib.sha256(f"{text} {name}".encode()).hexdigest()[:12]
    said = "\n".join(f"{one}: {_dump(known[one])}" for one in sorted(used))
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def _dump(node: ast.AST) -> str:
    """The tree as text, the same in every version of Python: 3.12 adds a field, 3.13 leaves out what is empty."""
    options: dict[str, Any] = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(node, **options).replace(", type_params=[]", "")


ONE_WORD = ("RMSNorm", "SwiGLU", "GeLU")


def snake(name: str) -> str:
    """`AddRMSNorm` → `add_rmsnorm`"""
    for word in ONE_WORD:
        name = name.replace(word, word.capitalize())
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def parameter(*sizes: int, dtype: torch.dtype = torch.float32, scale: float = 0.1) -> nn.Parameter:
    """A parameter whose values are far from zero and one, so that a lost one is seen."""
    return nn.Parameter((torch.randn(*sizes) * scale + 0.5).to(dtype), requires_grad=True)


def weight(*sizes: int, dtype: torch.dtype = torch.float32) -> nn.Parameter:
    """A matmul weight, scaled so that outputs stay near one."""
    return nn.Parameter((torch.randn(*sizes) / sizes[-1] ** 0.5).to(dtype), requires_grad=True)
