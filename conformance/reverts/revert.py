"""A fix taken out of what is installed: the changed files go to a folder, the overlay; nothing installed is touched."""

from __future__ import annotations

import ast
import difflib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from conformance import paths
from conformance.reverts.history import git

SITE = Path(__file__).with_name("site")
VARIABLE = "CONFORMANCE_OVERLAY"
FUZZ = 3  # lines of context that may differ


def revert(checkout: Path, commit: str, files: Sequence[str], installed: Path, folder: Path) -> str:
    """Take what a commit changed in `files` out of the files below `installed`, into `folder`. Returns why it cannot be done; empty if
    it was."""
    shutil.rmtree(folder, ignore_errors=True)
    status = git(checkout, "show", "--format=", "--name-status", "--no-renames", commit, "--", *files).split("\n")
    if any(line and not line.startswith("M") for line in status):
        return "a file was added, moved or removed"
    for file in files:
        if not (installed / file).is_file():
            return f"{file} is not installed"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(installed / file, folder / file)
    # Without the checkout's attributes and with a/ b/, whatever the user's settings of git are.
    text = git(
        checkout,
        "show",
        "--format=",
        "--no-ext-diff",
        "--no-color",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        commit,
        "--",
        *files,
    )
    words = ["patch", "-R", "-p1", "-f", "-s", f"-F{FUZZ}", "--no-backup-if-mismatch", "-r", "-", "-d", str(folder)]
    done = subprocess.run(words, input=text.encode("utf-8", "surrogateescape"), capture_output=True, check=False)
    if done.returncode:
        said = [
            line for line in done.stdout.decode(errors="replace").splitlines() if "FAILED" in line or "patch" in line
        ]
        return (said or ["patch fails"])[0][:200]
    for file in files:
        try:
            ast.parse((folder / file).read_bytes())
        except SyntaxError as error:
            return f"{file} is no Python then: {error.msg}"
        if (folder / file).read_bytes() == (installed / file).read_bytes():
            (folder / file).unlink()
    return "" if changed_lines(installed, folder) else "nothing is changed by it"


def changed_lines(installed: Path, folder: Path) -> dict[str, list[list[int]]]:
    """Which lines of the installed files the overlay changes, as [first, last]; where it adds lines, the line before them."""
    found: dict[str, list[list[int]]] = {}
    for path in sorted(folder.rglob("*.py")):
        file = path.relative_to(folder).as_posix()
        one, other = ((root / file).read_text(encoding="utf-8").splitlines() for root in (installed, folder))
        for tag, first, last, _, _ in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
            if tag != "equal":
                found.setdefault(file, []).append([first + 1, last] if last > first else [max(first, 1), max(first, 1)])
    return found


def with_overlay(folder: Path | None, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of an interpreter that has the overlay; without a folder, one that has none."""
    changed = {name: value for name, value in env.items() if name != VARIABLE}
    before = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and p != str(SITE)]
    mine: Iterable[str] = [str(SITE)] if folder else []
    changed["PYTHONPATH"] = os.pathsep.join([*mine, *before])
    if folder:
        changed[VARIABLE] = str(folder)
    return changed


def installed_root() -> Path:
    """The folder that the installed torch lies in; asked without importing it."""
    from importlib.util import find_spec

    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent.parent


def state(*parts: str) -> Path:
    return paths.cache_folder("reverts", *parts)
