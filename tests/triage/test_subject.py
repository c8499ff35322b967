"""What triage takes, and what it says of what it does not take: one line each."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance import oracle
from conformance.errors import UsageError
from conformance.library import load
from conformance.triage.micrograph_subject import find

HEAD = "import torch\nexample_inputs = (torch.randn(3, 4),)\n"


def file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "model.py"
    path.write_text(text)
    return f"{path}:Thing"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "def Thing(x): raise ValueError('no')", "does not run in eager: ValueError: no"),
        (
            HEAD + "import os\ndef Thing(x): return x + int.from_bytes(os.urandom(2), 'big')",
            "is not deterministic in eager",
        ),
        ("def Thing(x): return x", "gives no inputs: add `example_inputs"),
        (HEAD + "Thing = 3", "is a int; triage takes a module class, a module or a function"),
        (HEAD + "def Other(x): return x", "unknown object in .*model.py 'Thing'"),
        (HEAD + "1/0", "does not import: ZeroDivisionError"),
        (
            HEAD + "class Thing(torch.nn.Module):\n    def __init__(self, n): super().__init__()",
            "cannot be made without arguments",
        ),
    ],
)
def test_a_mistake_is_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        find(file(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_no_object_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="say which object"):
        find(str(tmp_path / "model.py"))
    with pytest.raises(UsageError, match="no file"):
        find(str(tmp_path / "gone.py:Thing"))


def test_a_module_with_its_contract_from_eager(tmp_path: Path) -> None:
    subject = find(
        file(
            tmp_path,
            HEAD
            + "class Thing(torch.nn.Module):\n    def forward(self, x):\n        x.add_(1)\n        return x * 2\n",
        )
    )
    assert subject.micrograph.contract.runtime.mutates == (0,)
    module = subject.micrograph.build()
    first, second = subject.micrograph.example(0), subject.micrograph.example(1)
    assert not torch.equal(first[0], second[0])
    assert oracle.run(module, first, module).error is None


def test_a_cell_of_the_suite() -> None:
    assert find("fusion/inductor/cpu/norm.layer_norm").micrograph is load()["norm.layer_norm"]
    with pytest.raises(UsageError, match="unknown micrograph"):
        find("fusion/inductor/cpu/norm.layernorm")
