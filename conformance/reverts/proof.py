"""Is the bug back? The tests that the fix added or changed say so: right as installed, wrong with the fix taken out."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance import paths
from conformance.errors import UsageError
from conformance.reverts import revert
from conformance.reverts.bug import NOT_APPLIED, NOT_PROVEN, PROVEN, Bug
from conformance.reverts.history import git

LIMIT = 180.0  # seconds for the tests of one fix
REASON = 160  # characters
MOST_OF_METHOD = 8  # tests of one method: a parametrized one may have hundreds
TEST_FOLDERS = ("test/dynamo", "test/inductor", "test/functorch", "test/custom_operator")
NOT_PASSED = {"failed", "not imported"}
# A test, or installed code, that asks for something which the fix brings fails without it; that says nothing about the bug.
NEW_NAME = re.compile(
    r"cannot import name|No module named|(module|type object) '[\w.]+' has no attribute|unexpected keyword argument|does not have the attribute"
    r"|missing \d+ required (positional|keyword)|takes (from )?\d+ .*positional arguments? but|name '\w+' is not defined"
)
ASKED_FOR = re.compile(r"has no attribute '(\w+)'")
WORD = re.compile(r"[A-Za-z_]\w*")


def methods(text: str) -> dict[str, str]:
    """Every test function of a file, by its class and name, as text without comments and layout."""
    found: dict[str, str] = {}

    def look(body: list[ast.stmt], before: str) -> None:
        for one in body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name.startswith("test"):
                found[before + one.name] = ast.unparse(one)
            elif isinstance(one, ast.ClassDef):
                look(one.body, f"{before}{one.name}.")
            elif isinstance(one, (ast.If, ast.With, ast.Try, ast.FunctionDef)):
                look(one.body, before)

    look(ast.parse(text).body, "")
    return found


def changed_methods(before: str, after: str) -> list[str]:
    """Names of the test methods that were added or changed."""
    old = methods(before)
    return sorted({name.split(".")[-1] for name, text in methods(after).items() if old.get(name) != text})


def brought_names(installed: Path, overlay: Path) -> set[str]:
    """Words of the installed files that the overlay's do not have: what the fix, and only it, brought."""
    files = [path.relative_to(overlay) for path in overlay.rglob("*.py")]
    words = lambda root: {word for file in files for word in WORD.findall((root / file).read_text(encoding="utf-8"))}
    return words(installed) - words(overlay)


def asks_for_name(line: str, brought: set[str]) -> bool:
    """Does a test fail for a name that is gone, and not for the bug?"""
    return bool(NEW_NAME.search(line)) or any(name in brought for name in ASKED_FOR.findall(line))


@dataclass
class Answers:
    """What the tests said, by their names."""

    outcomes: dict[str, str] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    ended: str = ""  # why the process did not end by itself

    def that(self, *outcomes: str) -> list[str]:
        return [test for test, outcome in self.outcomes.items() if outcome in outcomes]


class Prover:
    """Puts fixes out of the installed package, one at a time, and asks their tests."""

    def __init__(self, checkout: Path, limit: float = LIMIT) -> None:
        self.checkout, self.limit = checkout, limit
        self.installed = revert.installed_root()
        self.folder = revert.state("proofs")

    def prove(self, bug: Bug) -> dict[str, Any]:
        """What is to be kept of the bug."""
        start = time.monotonic()
        overlay = overlay_of(bug)
        refusal = revert.revert(self.checkout, bug.commit, bug.files, self.installed, overlay)
        if refusal:
            shutil.rmtree(overlay, ignore_errors=True)
            return {"outcome": NOT_APPLIED, "reason": refusal}
        said = {"changed": revert.changed_lines(self.installed, overlay)} | self._ask(bug, overlay)
        for folder in (
            self.folder / bug.commit[:12],
            self.installed,
        ):  # a record says what, not where somebody keeps files
            said["reason"] = str(said["reason"]).replace(f"{folder}/", "")[:REASON]
        return said | {"seconds": round(time.monotonic() - start, 1)}

    def _ask(self, bug: Bug, overlay: Path) -> dict[str, Any]:
        place = self.folder / bug.commit[:12]
        shutil.rmtree(place, ignore_errors=True)
        try:
            chosen, known = self._tests(bug, place)
            if not chosen:
                return {"outcome": NOT_PROVEN, "reason": "no test method was added or changed"}
            # The same mechanism with the installed text: what an overlay itself does is on both sides.
            plain = self._run(place, "plain", chosen, known, copies(bug.files, self.installed, place / "copies"))
            if not plain.that("passed"):
                return {"outcome": NOT_PROVEN, "reason": _why_not(plain)}
            changed = self._run(place, "reverted", chosen, known, overlay)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        passed = plain.that("passed")
        if broken := [line for test in changed.that("not imported") if (line := changed.lines[test])]:
            return {"outcome": NOT_PROVEN, "reason": f"nothing can be imported without it: {broken[0]}"[:300]}
        failed = [test for test in passed if changed.outcomes.get(test) == "failed"]
        brought = brought_names(self.installed, overlay)
        proof = [test for test in failed if not asks_for_name(changed.lines[test], brought)]
        if not proof and changed.ended:
            proof = [test for test in passed if test not in changed.outcomes][:1]
        if not proof and failed:
            return {"outcome": NOT_PROVEN, "reason": f"it brings a name: {changed.lines[failed[0]]}"[:300]}
        if not proof:
            return {"outcome": NOT_PROVEN, "reason": "its tests pass without it, too"}
        line = changed.lines.get(proof[0]) or changed.ended
        return {"outcome": PROVEN, "proof": proof[:10], "reason": line}

    def _tests(self, bug: Bug, place: Path) -> tuple[dict[str, list[str]], list[str]]:
        """The changed methods by test file, and the names of all methods; the test folders are laid out in `place`."""
        chosen, known = {}, set()
        for file in bug.tests:
            after = git(self.checkout, "show", f"{bug.commit}:{file}")
            try:
                before = git(self.checkout, "show", f"{bug.commit}~:{file}")
            except UsageError:
                before = ""
            if names := changed_methods(before, after):
                chosen[file] = names
                known |= {name.split(".")[-1] for name in methods(after)}
        if chosen:
            self._lay_out(bug.commit, place)
        return chosen, sorted(known)

    def _lay_out(self, commit: str, place: Path) -> None:
        """Tests import their neighbours. One file at a time: a checkout without all of its objects cannot make an archive."""
        files = [f for f in git(self.checkout, "ls-tree", "--name-only", commit, "test/").split() if f.endswith(".py")]
        files += git(self.checkout, "ls-tree", "-r", "--name-only", commit, "--", *TEST_FOLDERS).split()
        names = [f for f in files if f.endswith((".py", ".json", ".txt")) and "expected_failures" not in f]
        words = ["git", "-C", str(self.checkout), "cat-file", "--batch"]
        asked = "".join(f"{commit}:{name}\n" for name in names).encode()
        data = subprocess.run(words, input=asked, capture_output=True, check=True).stdout
        at = 0
        for name in names:
            end = data.index(b"\n", at)
            head, at = data[at:end].split(), end + 1
            if head[-1] == b"missing":
                continue
            size = int(head[-1])
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data[at : at + size])
            at += size + 1

    def _run(
        self, place: Path, name: str, chosen: dict[str, list[str]], known: list[str], overlay: Path | None
    ) -> Answers:
        out, settings = place / f"{name}.jsonl", place / f"{name}.json"
        temporary = revert.state("tmp")
        names = sorted({method for found in chosen.values() for method in found})
        settings.write_text(json.dumps({"methods": names, "known": known, "most": MOST_OF_METHOD, "out": str(out)}))
        env = revert.with_overlay(overlay, os.environ) | {
            "CONFORMANCE_CHOSEN": str(settings),
            "TORCHINDUCTOR_CACHE_DIR": str(place / name / "cache"),
            "TMPDIR": str(temporary),  # shared: Inductor keeps its compiled headers there
            "TORCHINDUCTOR_VEC_ISA_OK": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env["PYTHONPATH"], str(paths.PACKAGE.parent)]))
        words = [sys.executable, "-m", "pytest", "-q", "-p", "conformance.reverts.chosen_tests", "-p", "no:conformance"]
        words += [
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--noconftest",
            "-c",
            os.devnull,
            f"--rootdir={place}",
            *chosen,
        ]
        with (place / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                words, cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            ended = ""
            try:
                code = process.wait(self.limit)
                ended = f"ended by signal {-code}" if code < 0 else ""
            except subprocess.TimeoutExpired:
                ended = f"took longer than {self.limit:.0f} s"
            finally:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        answers = Answers(ended=ended)
        for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else ():
            told = json.loads(line)
            if answers.outcomes.get(told["test"]) not in NOT_PASSED:
                answers.outcomes[told["test"]], answers.lines[told["test"]] = told["outcome"], told["line"]
        return answers


def copies(files: Iterable[str], installed: Path, folder: Path) -> Path:
    """An overlay that changes nothing."""
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(installed / file, folder / file)
    return folder


def overlay_of(bug: Bug) -> Path:
    return revert.state("overlays") / bug.commit[:12]


def _why_not(plain: Answers) -> str:
    """Why no test passes as installed."""
    for outcome, words in (
        ("failed", "its tests fail with the fix, too"),
        ("not imported", "its test file cannot be imported"),
        ("skipped", "its tests are skipped"),
        ("expected", "its tests are expected to fail"),
    ):
        if tests := plain.that(outcome):
            return f"{words}: {plain.lines[tests[0]]}"[:300]
    return plain.ended or "its tests are not made here"
