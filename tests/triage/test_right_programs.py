"""No alarm on right programs: scripts of every kind, and small models of transformers as an object and in a script."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "scripts_right").glob("*.py"))
MODELS = ("llama", "qwen3", "mixtral", "gpt2", "bert", "t5", "vit", "whisper", "mamba", "clip")
OBJECT = """
from transformers_models import build

model, example_inputs = build("{name}", {training})
"""
SCRIPT = """
import copy
import sys

import torch
import torch._inductor.config
from torch.utils._pytree import tree_leaves
from transformers_models import build

torch._inductor.config.fallback_random = True  # dropout as in eager
model, inputs = build("{name}", {training})
other = copy.deepcopy(model)


def seen(model, call):
    torch.manual_seed(0)
    with torch.set_grad_enabled({training}):
        found = [x for x in tree_leaves(call(*inputs)) if isinstance(x, torch.Tensor)]
    if {training}:
        sum(x.square().mean() for x in found if x.requires_grad).backward()
    return [x.detach() for x in found] + [p.grad for p in model.parameters() if p.grad is not None]


want, got = seen(model, model), seen(other, torch.compile(other))
same = [torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(want, got, strict=True)]
print(len(same), "tensors,", same.count(False), "differ")
sys.exit(not all(same))
"""


def triaged(subject: str, tmp_path: Path) -> dict[str, Any]:
    """What the command says, in an interpreter of its own."""
    env = {**os.environ, "CONFORMANCE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(HERE.parents[1])}
    words = [sys.executable, "-m", "conformance.cli", "triage", subject, "--json", "-o", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.stdout, done.stderr
    return {**json.loads(done.stdout), "returned": done.returncode}


def test_there_are_twenty() -> None:
    assert len(SCRIPTS) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_right_script_is_no_alarm(script: Path, tmp_path: Path) -> None:
    said = triaged(str(script), tmp_path)
    assert (said["verdict"], said["returned"]) == ("right", 0), said


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("form", ["object", "script"])
@pytest.mark.parametrize("training", [False, True], ids=["eval", "training"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_transformers_is_no_alarm(name: str, training: bool, form: str, tmp_path: Path) -> None:
    shutil.copy(HERE / "transformers_models.py", tmp_path)
    file = tmp_path / f"{name}.py"
    file.write_text((OBJECT if form == "object" else SCRIPT).format(name=name, training=training))
    said = triaged(f"{file}:model" if form == "object" else str(file), tmp_path)
    assert (said["verdict"], said["returned"]) == ("right", 0), said
