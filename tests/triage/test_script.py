"""Triage of scripts with the real compiler: broken on purpose where the stage must be known, or with a known defect."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import paths, seeded
from conformance.errors import UsageError
from conformance.stage import Stage
from conformance.triage import answer as said
from conformance.triage.answer import Answer
from conformance.triage.hold import Hold
from conformance.triage.runs import Runs
from conformance.triage.script_search import Search
from conformance.triage.script_triage import checked, early_environment, made_ready

pytestmark = pytest.mark.own_process  # it forks, or compiles with a patched compiler
HEAD = "import sys\nimport torch\n\ntorch.manual_seed(0)\nx, y = torch.randn(6, 33), torch.randn(6, 33)\n"
TAIL = "\nwant, got = f(x, y), torch.compile(f)(x, y)\nsys.exit(not torch.allclose(want, got, atol=1e-4))\n"
GUARD = """
def f(x, n):
    return x * n

compiled = torch.compile(f, dynamic=False)
sys.exit(not all(torch.equal(compiled(x, n), f(x, n)) for n in (2, 3)))
"""
CACHED = """
def f(x, y):
    return torch.tanh(x) + y

for _ in range(2):
    torch._dynamo.reset()
    got = torch.compile(f)(x, y)
sys.exit(not torch.allclose(f(x, y), got, atol=1e-4))
"""


@pytest.fixture(scope="module")
def triaged(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Answer]:
    """Triage of a text, forked from this very process."""
    adapter, versions = made_ready("inductor")

    def run(text: str, out: Path | None = None, shrink: bool = False, name: str = "") -> Answer:
        folder = tmp_path_factory.mktemp("script")
        file = folder / "given.py"
        file.write_text(text)
        subject = checked(file, (), name, tmp_path_factory.mktemp("object") if name else None)
        runs = Runs(adapter.hold)
        try:
            return Search(subject, adapter, runs, versions, limit=60).run(out, shrink)
        finally:
            runs.close()

    return run


def body(expression: str) -> str:
    return f"{HEAD}\ndef f(x, y):\n    return {expression}\n{TAIL}"


@pytest.mark.parametrize(
    ("fault", "text", "stage", "culprit"),
    [
        ("captured_wrong_op", body("x - y"), Stage.CAPTURE, "x - y"),
        ("no_constant_guards", HEAD + GUARD, Stage.CAPTURE, "guard"),
        ("gelu_always_tanh", body("torch.nn.functional.gelu(x * 2)"), Stage.DECOMPOSITION, "aten.gelu.default"),
        ("noop_pass_eats_relu", body("torch.relu(x) + y"), Stage.POSTGRAD, "pass"),
        ("sigmoid_lowered_to_tanh", body("torch.sigmoid(x) + y"), Stage.CODEGEN, "aten.sigmoid.default"),
        ("stale_program_served", HEAD + CACHED, Stage.CACHE, "cache"),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else "",
)
def test_the_stage_that_was_broken_is_named(
    triaged: Callable[..., Answer], fault: str, text: str, stage: Stage, culprit: str
) -> None:
    with seeded.get(fault):
        found = triaged(text)
    assert found.verdict == said.FOUND
    assert found.stage is stage, found.evidence()
    assert culprit in str(found.culprit)
    assert len(found.lines()) <= 15


def test_a_right_script_is_no_alarm(triaged: Callable[..., Answer]) -> None:
    text = """
import torch

class Counter:
    seen = 0

def step(counter, items, a, b, n):
    counter.seen += 1
    items.append(n)
    a.mul_(n)
    print("a graph break")
    return a + b.sum() if b.sum() > 0 else a - 1

base = torch.ones(8)
results = []
for call in (step, torch.compile(step)):
    base.fill_(1.0)
    counter, items = Counter(), []
    results.append((call(counter, items, base[:4], base[2:6], 3).tolist(), base.tolist(), counter.seen, items))
assert results[0] == results[1], results
"""
    found = triaged(text)
    assert found.verdict == said.RIGHT, found.lines()
    assert found.lines()[0].startswith("nothing fails")


ENDING = """
import atexit, pathlib, tempfile
kept = tempfile.TemporaryDirectory()
pathlib.Path({file!r}).write_text(kept.name)
atexit.register(pathlib.Path({ended!r}).touch)
"""


def test_a_run_ends_with_its_own_exit_handlers_and_none_of_ours(tmp_path: Path) -> None:
    adapter, _ = made_ready("inductor")
    file, ended, script = tmp_path / "folder", tmp_path / "ended", tmp_path / "given.py"
    script.write_text(ENDING.format(file=str(file), ended=str(ended)))
    runs = Runs(adapter.hold)
    with tempfile.TemporaryDirectory() as ours:
        assert runs(checked(script), Hold("eager"))[0].right
        assert Path(ours).exists()
    runs.close()
    assert ended.exists() and not Path(file.read_text()).exists()


def test_a_script_that_fails_without_the_compiler(triaged: Callable[..., Answer]) -> None:
    found = triaged("import torch\ntorch.compile(lambda x: x + 1)(torch.ones(2))\nassert 1 == 2, 'never'\n")
    assert found.verdict == said.IN_EAGER
    assert "AssertionError: never" in found.lines()[0]


@pytest.mark.slow
def test_what_does_not_fail_alone_is_not_handed_over(triaged: Callable[..., Answer], tmp_path: Path) -> None:
    """The fault is in this process only: in a new interpreter the script is right."""
    with seeded.get("gelu_always_tanh"):
        found = triaged(body("torch.nn.functional.gelu(x * 2)"), tmp_path / "out")
    assert found.repro is None and not list((tmp_path / "out").iterdir())
    assert "the script alone ends with exit 0" in found.unwritten
    assert any(line.startswith("repro") and "none: " in line for line in found.lines())


# A class whose method gets other code: pytorch#197860, alive in every release from 2.11 to 2.15.
METHOD = """import sys
import torch

unused = 3

class Layer:
    def act(self, x):
        return x * 2

def faster(self, x):
    return x * 9

layer = Layer()
compiled = torch.compile(lambda x: layer.act(x))
compiled(torch.ones(2))
Layer.act.__code__ = faster.__code__
sys.exit(compiled(torch.ones(2)).tolist() != [9.0, 9.0])
"""


@pytest.mark.slow  # the command; its parts are tested around it
def test_from_a_script_to_its_repro(tmp_path: Path) -> None:
    """The whole command, in interpreters of its own."""
    file = tmp_path / "method.py"
    file.write_text(METHOD)
    command = [
        sys.executable,
        "-m",
        "conformance.cli",
        "triage",
        str(file),
        "-o",
        str(tmp_path / "out"),
        "--json",
        "--limit",
        "10",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **_environment(tmp_path)}
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert (found["stage"], found["culprit"]["what"]) == ("capture", "guard")
    assert "x * 9" in found["culprit"]["name"]
    assert found["verified"] == "alone it exits 1; cured it exits 0"
    assert "Traceback" not in done.stderr and "Warning" not in done.stderr
    repro = Path(found["repro"]).read_text()
    assert "REPRO_CURED" in repro and "conformance" not in repro
    assert "**Stage**: capture" in Path(found["issue"]).read_text()


def _environment(home: Path) -> dict[str, str]:
    return {"PYTHONPATH": paths.import_path(), "CONFORMANCE_HOME": str(home / "home"), "HOME": str(home)}


def test_what_a_script_sets_before_it_imports_torch() -> None:
    text = 'import os\nos.environ["TORCH_X"] = "1"\nos.environ.setdefault("TORCH_Y", "2")\nos.environ["Z"] = str(3)\n'
    assert early_environment(text) == {"TORCH_X": "1", "TORCH_Y": "2"}


def test_torch_is_not_imported_before_that() -> None:
    code = 'import sys, conformance.triage.command, conformance.triage.script_triage; sys.exit("torch" in sys.modules)'
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": paths.import_path()}).returncode == 0


# ------------------------------------------------------------------------------------------ FILE.py:OBJECT

RIGHT_OBJECTS = {
    "a number, a string and a list beside a tensor": """
example_inputs = (torch.ones(3), 3, "mean", [torch.ones(2), 4])
def Thing(x, n, how, items): return x * n, items[0] + items[1], how
""",
    "inputs that share storage, one written": """
base = torch.arange(8.0)
example_inputs = (base[:4], base[2:6])
def Thing(a, b):
    a.add_(1)
    return a + b
""",
    "training with dropout, an inner module in eval": """
class Thing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop = torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)
        self.norm = torch.nn.BatchNorm1d(4).eval()
    def forward(self, x):
        print("a graph break")
        return self.drop(self.norm(self.first(x)))
example_inputs = (torch.randn(5, 4, requires_grad=True),)
""",
}


@pytest.mark.parametrize("what", RIGHT_OBJECTS)
def test_a_right_object_is_no_alarm(triaged: Callable[..., Answer], what: str) -> None:
    found = triaged(f"import torch\n{RIGHT_OBJECTS[what]}", name="Thing")
    assert found.verdict == said.RIGHT, [*found.lines(), found.given.output]


def test_a_wrong_value_beside_a_graph_break(triaged: Callable[..., Answer]) -> None:
    text = """import torch
example_inputs = (torch.randn(6, 33),)
def Thing(x):
    x = x + 1
    print("a graph break")
    return torch.nn.functional.gelu(x * 2)
if __name__ == "__main__":
    raise SystemExit("not a part of the object")
"""
    with seeded.get("gelu_always_tanh"):
        found = triaged(text, name="Thing")
    assert (found.stage, found.kind) == (Stage.DECOMPOSITION, "wrong_result")
    assert found.culprit is not None and found.culprit.name == "aten.gelu.default"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def Other(x): return x\nexample_inputs = ()", "unknown object in .*given.py 'Thing'"),
        ("def Thing(x): return x", "gives no inputs: add `example_inputs"),
        ("def Thing(x) return x", "is no Python"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "given.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        checked(file, (), "Thing", tmp_path)
    assert "\n" not in str(caught.value)
