"""Expectations are strict in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import backends, expectations
from conformance.errors import UsageError
from conformance.verdict import Finding, Kind, Verdict

ENTRY = """
[[expect]]
cell = "runtime/torch_tensorrt/*/mutation.*"
kind = "lost_mutation"
when = "torch>=2.11,<2.14"
url = "https://example.org/1"
why = "known"
"""
CELL = "runtime/torch_tensorrt/cuda/mutation.two_inputs"
LOST = [Finding(Kind.LOST_MUTATION, "X", "x")]


def loaded(folder: Path, text: str = ENTRY, torch: str = "2.13.0") -> expectations.Expectations:
    (folder / "x.toml").write_text(text)
    return expectations.load(folder, {"torch": torch, "machine": "x86_64"})


def test_the_expected_failure_is_xfail(tmp_path: Path) -> None:
    verdict, entry = loaded(tmp_path).judge(CELL, Verdict.FAIL, LOST)
    assert verdict is Verdict.XFAIL and entry and entry.url == "https://example.org/1"


@pytest.mark.parametrize("torch", ["2.14.0", "2.10.0", "2.14.1+cu130"])
def test_another_version_is_not_expected_to_fail(tmp_path: Path, torch: str) -> None:
    assert loaded(tmp_path, torch=torch).judge(CELL, Verdict.FAIL, LOST)[0] is Verdict.FAIL
    assert loaded(tmp_path, torch=torch).judge(CELL, Verdict.PASS, [])[0] is Verdict.PASS


def test_an_unexpected_pass_is_an_error(tmp_path: Path) -> None:
    assert loaded(tmp_path).judge(CELL, Verdict.PASS, [])[0] is Verdict.XPASS
    assert Verdict.XPASS.unexpected


def test_another_kind_of_failure_is_not_covered(tmp_path: Path) -> None:
    other = [Finding(Kind.WRONG_RESULT, "X", "x")]
    assert loaded(tmp_path).judge(CELL, Verdict.FAIL, other)[0] is Verdict.FAIL
    assert loaded(tmp_path).judge(CELL, Verdict.FAIL, LOST + other)[0] is Verdict.FAIL


def test_a_backend_of_another_package_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(tmp_path)
    monkeypatch.setattr(backends.get("eager"), "expectations", tmp_path, raising=False)
    assert [entry.url for entry in expectations.load().entries if entry.source.startswith("x.toml")] == [
        "https://example.org/1"
    ]


def test_an_entry_that_matches_nothing_is_found(tmp_path: Path) -> None:
    assert loaded(tmp_path).unmatched({"inductor": ["cpu"]}, ["norm.rmsnorm"])
    assert not loaded(tmp_path).unmatched({"torch_tensorrt": ["cuda"]}, ["mutation.two_inputs"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("lost_mutation", "lost_motion"), "did you mean lost_mutation"),
        (("runtime/torch_tensorrt/*/mutation.*", "mutation.*"), "stage/backend/target/micrograph"),
        (('url = "https://example.org/1"', ""), "needs a url or a repro"),
        (("kind =", "kindd ="), "unknown key"),
        (("[[expect]]", "[[expect"), "is not TOML"),
    ],
)
def test_a_mistake_in_an_entry_is_one_line(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        loaded(tmp_path, ENTRY.replace(*change))


def test_a_bad_version_condition_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a version condition"):
        loaded(tmp_path, ENTRY.replace(">=2.11,<2.14", "=>2.11")).judge(CELL, Verdict.FAIL, LOST)


@pytest.mark.parametrize(
    ("version", "holds"),
    [
        ("1.3.0rc17 50ca49f8c5", True),
        ("1.3.0rc17 50ca49f8c5+", True),
        ("1.3.0rc17", True),
        ("1.2.0 ab", False),
        ("unknown version", False),
    ],
)
def test_a_version_may_have_a_commit_behind_it(tmp_path: Path, version: str, holds: bool) -> None:
    (tmp_path / "x.toml").write_text(ENTRY.replace("torch>=2.11,<2.14", "autodeploy>=1.3.0rc17,<1.4"))
    found = expectations.load(tmp_path, {"autodeploy": version})
    assert found.judge(CELL, Verdict.FAIL, LOST)[0] is (Verdict.XFAIL if holds else Verdict.FAIL)
