"""Fixes of PyTorch's history: commits that change Python of the compilers and a test. The rules are simple, and say why not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from conformance import paths
from conformance.errors import UsageError
from conformance.reverts.bug import CANDIDATE, LEFT_OUT, NAMED, Bug

SOURCES = re.compile(
    r"torch/(_dynamo|_inductor|_functorch|_decomp|_refs|_subclasses|_higher_order_ops|fx/experimental|utils/_sympy)/.*\.py$"
    r"|torch/(_meta_registrations|_guards)\.py$"
)
PACKAGE = re.compile(r"torch/.*\.py$")
ELSEWHERE = re.compile(r"torch/testing/|torch/_inductor/kernel/vendored|torch/.*/(benchmark|test)s?/")
COMPILED = re.compile(
    r"^(aten|c10|caffe2|third_party|torch/csrc|torch/lib|torch/headeronly|cmake|functorch/csrc)/|\.(cpp|cu|cuh|h|jinja)$"
)
TESTS = re.compile(r"test/(dynamo|inductor|functorch)/test_\w+\.py$|test/test_\w+\.py$")

NO_FIX = {
    "a revert": r"^(back out|revert)\b",
    "types, style or words": r"typing|type (annotation|coverage|hint)|pyrefly|mypy|\blint|docs?\b|docstring|typo|\[be\]|\[ez\]|"
    r"pep ?\d|spelling|comment",
    "no change of behaviour": r"refactor|rename|clean ?up|\bnfc\b|\bbench|logging|tlparse|\blog\b|compile[- ]time|speed ?up|move .* to|flaky|"
    r"instruction count|profil",
    "another device": r"rocm|\bamd\b|\bhip\b|xpu|mtia|\bmps\b|metal|vulkan|\btpu\b|pallas|cutlass|cutedsl|nvgemm|nvmath|triton|\bcuda\b|"
    r"\bgpu|blackwell|hopper|sm\d\d|tma\b|\bptx\b|cublas|nvshmem|nccl|helion|tlx|\bhpu\b|privateuse",
    "several processes": r"distributed|dtensor|fsdp|ddp\b|collective|nccl|bucketing|overlap|symm_?mem",
    "the C++ wrapper or a package": r"aoti|cpp[-_ ]wrapper|aot[-_ ]?inductor|fbcode|\bwindows\b|minifier",
}
FIX = re.compile(
    r"\bfix|\bbug|correct|wrong|crash|missing|handle|handling|respect|preserve|guard|avoid|\bdon'?t\b|do not|\bno longer|error|raise|"
    r"ensure|prevent|mismatch|properly|instead of|invalid|stale|leak|regress|\bnan\b|overflow|unsound|must|should",
    re.IGNORECASE,
)
PULL = re.compile(r"Pull Request resolved: https://github\.com/pytorch/pytorch/pull/(\d+)")
ISSUE = re.compile(
    r"(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?)\s*:?\s*(?:issue\s*)?(?:pytorch/pytorch)?(?:#|https://github\.com/pytorch/pytorch/issues/)(\d+)",
    re.IGNORECASE,
)
REVERTS = re.compile(r"This reverts commit ([0-9a-f]{40})")


def git(checkout: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(checkout), *words], capture_output=True, check=False)
    if done.returncode:
        raise UsageError(f"git {words[0]}: {done.stderr.decode(errors='replace').strip().splitlines()[-1:]}")
    return done.stdout.decode("utf-8", "replace")


def fixes(checkout: Path, since: str) -> Iterator[Bug]:
    """All commits that change the compilers' Python, each with what a rule says of it; of a pull request that was merged
    several times, the last."""
    commits = list(_commits(checkout, since))
    known = named_in_library()
    undone = {commit for _, _, _, body, _ in commits for commit in REVERTS.findall(body)}
    landed: set[int] = set()
    for commit, date, title, body, files in commits:  # newest first
        package = [f for f in files if PACKAGE.match(f) and not ELSEWHERE.match(f)]
        if not any(SOURCES.match(f) for f in package):
            continue
        pulls = [int(number) for number in PULL.findall(body)]
        bug = Bug(
            commit, title, date, pulls[-1] if pulls else 0, sorted({int(n) for n in ISSUE.findall(title + "\n" + body)})
        )
        bug.files, bug.tests = package, [f for f in files if TESTS.match(f)]
        bug.reason = _no_fix(bug, files)
        if not bug.reason and commit in undone:
            bug.reason = "was reverted"
        if not bug.reason and bug.pull in landed:
            bug.reason = "was merged again later"
        if commit not in undone:
            landed.add(bug.pull)
        bug.outcome = LEFT_OUT if bug.reason else CANDIDATE
        if not bug.reason and (word := known.of(bug)):
            bug.outcome, bug.reason = NAMED, f"the library names {word}"
        yield bug


def _commits(checkout: Path, since: str) -> Iterator[tuple[str, str, str, str, list[str]]]:
    form = "%x01%H%x02%cs%x02%s%x02%b%x03"
    for entry in git(checkout, "log", "--no-merges", f"--since={since}", "--name-only", f"--format={form}").split(
        "\x01"
    )[1:]:
        told, _, files = entry.partition("\x03")
        commit, date, title, body = told.split("\x02", 3)
        yield commit, date, title, body, files.split()


def _no_fix(bug: Bug, files: Iterable[str]) -> str:
    """Why a rule leaves the commit out; empty if none does."""
    if not bug.pull:
        return "not merged upstream"
    for reason, words in NO_FIX.items():
        if re.search(words, bug.title, re.IGNORECASE):
            return reason
    if not FIX.search(bug.title):
        return "its title does not say that something is wrong"
    if any(COMPILED.search(f) for f in files):
        return "changes more than Python"
    if not bug.tests:
        return "no test file that can be run here"
    return ""


class Named:
    """Numbers and hashes that the library names."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.numbers: set[int] = set()
        self.hashes: set[str] = set()
        for text in texts:
            self.numbers |= {int(n) for n in re.findall(r"(?:#|/issues/|/pull/)(\d{4,6})\b", text)}
            self.hashes |= {h for h in re.findall(r"\b[0-9a-f]{8,40}\b", text) if not h.isdigit()}

    def of(self, bug: Bug) -> str:
        for number in (bug.pull, *bug.issues):
            if number in self.numbers:
                return f"#{number}"
        return next((h for h in self.hashes if bug.commit.startswith(h)), "")


def named_in_library() -> Named:
    """What micrographs, expectations and the findings are written after."""
    files = [*(paths.data() / "fixtures").rglob("*.py"), *(paths.data() / "fixtures").rglob("*.toml")]
    findings = paths.PACKAGE.parent / "docs" / "findings.md"
    return Named(f.read_text(encoding="utf-8") for f in [*files, findings] if f.exists())
