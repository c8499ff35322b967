"""The recipes of docs/upstream.md, run as they stand there, where a checkout is at hand.

`PYTORCH_SRC`, `TORCH_TENSORRT_SRC` and `TRTLLM_SRC` name the checkouts; `PYTORCH_PYTHON` and so on an interpreter with that
project's package, where it is not this one.
"""

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
RECIPES = re.findall(r"\| `conformance upstream (\w+ --src \$[A-Z_]+_SRC -s .+?)` \|", DOCUMENT)


class Recipe:
    """A line of the table: the words, and what they name."""

    def __init__(self, line: str) -> None:
        self.words = shlex.split(line)
        self.suite, self.variable = self.words[0], self.words[2].removeprefix("$")
        self.stage = self.words[self.words.index("-s") + 1]
        self.glob = self.words[self.words.index("-f") + 1]

    @property
    def source(self) -> str:
        return os.environ.get(self.variable, "")

    @property
    def python(self) -> list[str]:
        named = os.environ.get(self.variable.replace("_SRC", "_PYTHON"))
        return ["--python", named] if named else []


def test_there_are_recipes_for_four_stages_of_pytorch() -> None:
    recipes = [Recipe(line) for line in RECIPES]
    assert {one.stage for one in recipes if one.suite == "pytorch"} == {"capture", "postgrad", "fusion", "cache"}
    assert {one.suite for one in recipes} == set(stage_map.names())


@pytest.mark.slow
@pytest.mark.parametrize("line", RECIPES, ids=lambda line: "-".join((Recipe(line).suite, Recipe(line).stage)))
def test_a_recipe_runs_and_sees_its_stage(line: str, command: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    recipe, record = Recipe(line), tmp_path / "recipe.jsonl"
    if not recipe.source:
        pytest.skip(f"{recipe.variable} names no checkout of {recipe.suite}")
    words = [recipe.source if word == f"${recipe.variable}" else word for word in recipe.words]
    code, printed = command(*words, "--record", record, *recipe.python)
    passed = [cell for cell, told in read(record).cells.items() if told["verdict"] == "pass" and "::test" in cell]
    assert passed, printed
    backend = stage_map.load(recipe.suite).suite.backend
    assert all(cell.startswith(f"{recipe.stage}/{backend}/") for cell in passed)
    assert code == 0, printed


@pytest.mark.parametrize("line", RECIPES, ids=lambda line: "-".join((Recipe(line).suite, Recipe(line).stage)))
def test_a_recipe_selects_a_mapped_file(line: str) -> None:
    recipe = Recipe(line)
    mapped = stage_map.load(recipe.suite)
    if recipe.source and Path(recipe.source).is_dir():
        checkout = open_checkout(Path(recipe.source), mapped.suite)
        assert selected_files(checkout, mapped, (recipe.stage,), (recipe.glob,))
    named = [entry for entry in mapped.entries if entry.file.endswith(recipe.glob.lstrip("*"))]
    stages = {entry.stage for entry in named} | mapped.stages_of(recipe.glob)
    assert recipe.stage in {stage.value for stage in stages}, f"the map has no {recipe.stage} tests in {recipe.glob}"
