"""The recipes of docs/upstream.md, run as they stand there, where a checkout of PyTorch is at hand."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.record import read
from conformance.upstream import stage_map
from conformance.upstream.checkout import open_checkout
from conformance.upstream.commands import selected_files

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "upstream.md").read_text()
RECIPES = re.findall(r"\| `conformance upstream (pytorch --src \$PYTORCH_SRC .+?)` \|", DOCUMENT)


def test_there_are_recipes_for_four_stages() -> None:
    assert {shlex.split(recipe)[4] for recipe in RECIPES} == {"capture", "postgrad", "fusion", "cache"}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_runs_and_sees_its_stage(recipe: str, command: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    source, python = os.environ.get("PYTORCH_SRC"), os.environ.get("PYTORCH_PYTHON")
    if not source:
        pytest.skip("PYTORCH_SRC names no checkout of PyTorch")
    words = shlex.split(recipe.replace("$PYTORCH_SRC", source))
    stage, record = words[words.index("-s") + 1], tmp_path / "recipe.jsonl"
    code, printed = command(*words, "--record", record, *(["--python", python] if python else []))
    passed = [cell for cell, line in read(record).cells.items() if line["verdict"] == "pass" and "::test" in cell]
    assert passed, printed
    assert all(cell.startswith(f"{stage}/inductor/cpu/upstream:test/") for cell in passed)
    assert code == 0, printed


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_selects_a_mapped_file(recipe: str) -> None:
    source = os.environ.get("PYTORCH_SRC")
    words = shlex.split(recipe)
    stage, glob = words[words.index("-s") + 1], words[words.index("-f") + 1]
    mapped = stage_map.load("pytorch")
    if source:
        assert selected_files(open_checkout(Path(source), mapped.suite), mapped, (stage,), (glob,))
    files = [
        entry.file for entry in mapped.entries if entry.file.endswith(glob.lstrip("*")) and entry.stage.value == stage
    ]
    assert files, f"the map has no {stage} tests in {glob}"
