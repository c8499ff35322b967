"""What the documents say can be done is done here, so that they cannot drift."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from conformance import cli, paths
from conformance.library import load, must_run

ROOT = paths.PACKAGE.parent
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(set(re.findall(r"^conformance (.+?)(?:\s{2,}#.*|\s*#.*)?$", README, re.M)))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_readme_exists_with_its_options(line: str) -> None:
    words = shlex.split(line.replace("CELL | FILE.py:OBJECT", "CELL"))
    command = cli.group.get_command(click.Context(cli.group), words[0])
    assert command is not None
    if isinstance(command, click.Group):
        command, words = command.commands[words[1]], words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.split("=")[0] for word in words[1:] if word.startswith("-")}
    assert used <= known, f"{words[0]} has no {used - known}"


def test_the_micrograph_of_the_readme_is_one(tmp_path: Path) -> None:
    source = next(block for block in blocks(README, "python") if "class ScaledSum" in block)
    (tmp_path / "mine.py").write_text(source)
    library = load(tmp_path)
    assert list(library) == ["mine.scaled_sum"]
    must_run(library)


def test_the_check_of_the_readme_is_the_real_one() -> None:
    source = next(block for block in blocks(README, "python") if "FUS001" in block)
    assert source.strip() in (ROOT / "conformance/checks/fusion.py").read_text()


def test_every_linked_file_exists() -> None:
    for document in ROOT.glob("*.md"):
        for link in re.findall(r"\]\((?!http)([^)#]+)", document.read_text()):
            assert (ROOT / link).exists(), f"{document.name} links to {link}"


def test_every_tox_environment_of_the_readme_exists() -> None:
    tox = (ROOT / "tox.ini").read_text()
    for name in re.findall(r"tox -e ([\w,-]+)", README):
        for env in name.split(","):
            assert f"[testenv:{env}]" in tox or env.startswith("inductor-torch"), env
