"""The search over versions, with answers that need no compiler."""

from __future__ import annotations

import shutil

import pytest

from conformance.errors import UsageError
from conformance.triage.bisect import Answer, between, in_folder, released, search
from conformance.virtualenvs import Environments

VERSIONS = ["2.11.0", "2.12.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1", "2.15.0"]


def asking(first_bad: str, skipped: tuple[str, ...] = (), fact: bool = False):
    asked: list[str] = []

    def answer(version: str) -> Answer:
        asked.append(version)
        if version in skipped:
            return Answer(version, skipped="does not install")
        bad = VERSIONS.index(version) >= VERSIONS.index(first_bad)
        if fact:
            facts = {"kernels": 2 if bad else 1, "ops": {"aten.add.Tensor": 1, "aten.mul.Tensor": 1 + bad}}
            return Answer(version, "pass", facts, {"fusion": "pass"}, {"fusion": facts, "codegen": {"programs": 1}})
        return Answer(version, "fail" if bad else "pass", {}, {"fusion": "fail" if bad else "pass"})

    return answer, asked


@pytest.mark.parametrize("first_bad", VERSIONS[1:])
def test_finds_the_first_bad_version(first_bad: str) -> None:
    answer, asked = asking(first_bad)
    found = search(VERSIONS, answer, None, lambda _: None)
    assert found.bad.version == first_bad
    assert found.good.version == VERSIONS[VERSIONS.index(first_bad) - 1]
    assert len(asked) <= 5


def test_searches_by_a_fact_where_the_verdict_never_moved() -> None:
    found = search(VERSIONS, asking("2.13.0", fact=True)[0], "kernels", lambda _: None)
    assert (found.good.version, found.bad.version) == ("2.12.1", "2.13.0")
    assert list(found.moved()) == ["fusion: kernels: 1 → 2", "fusion: ops: aten.mul.Tensor 1 → 2"]


def test_a_version_that_does_not_install_is_passed_over() -> None:
    found = search(VERSIONS, asking("2.13.0", skipped=("2.13.0", "2.12.1"))[0], None, lambda _: None)
    assert (found.good.version, found.bad.version) == ("2.12.0", "2.14.0")


def test_a_good_version_that_is_bad_is_said() -> None:
    asked: list[str] = []
    with pytest.raises(UsageError, match="is not good: fail"):
        search(VERSIONS, lambda v: asked.append(v) or Answer(v, "fail"), None, lambda _: None)
    assert asked == ["2.11.0"], "the bad one need not be asked"
    with pytest.raises(UsageError, match="is not good: fail"):
        search(VERSIONS, lambda v: Answer(v, "fail" if v == "2.11.0" else "pass"), None, lambda _: None)
    with pytest.raises(UsageError, match="say the same: the verdict is pass in both"):
        search(VERSIONS, lambda v: Answer(v, "pass"), None, lambda _: None)


def test_an_unknown_fact_is_said() -> None:
    with pytest.raises(UsageError, match=r"no fact 'kernel'; it has kernels"):
        search(VERSIONS, asking("2.13.0", fact=True)[0], "kernel", lambda _: None)


def test_an_end_that_cannot_be_asked_is_said() -> None:
    with pytest.raises(UsageError, match="cannot be asked: does not install"):
        search(VERSIONS, asking("2.13.0", skipped=("2.15.0",))[0], None, lambda _: None)


def test_versions_between_either_way_round() -> None:
    assert between(VERSIONS, "2.12.0", "2.14.0") == ["2.12.0", "2.12.1", "2.13.0", "2.14.0"]
    assert between(VERSIONS, "2.14.0", "2.12.0") == ["2.14.0", "2.13.0", "2.12.1", "2.12.0"]


def test_a_folder_of_wheels(tmp_path) -> None:
    for name in ("torch-2.14.1-cp311-cp311-linux.whl", "torch-2.12.0+cpu-cp311-cp311-linux.whl", "numpy-2.0-py3.whl"):
        (tmp_path / name).touch()
    assert in_folder("torch", tmp_path) == ["2.12.0+cpu", "2.14.1"]
    with pytest.raises(UsageError, match="no wheel of triton"):
        in_folder("triton", tmp_path)


def test_without_a_network_the_list_of_releases_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"no list of releases of torch \(no network\?.*name them with --versions"):
        released("torch", "http://127.0.0.1:9/pypi")


@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")
def test_a_version_that_cannot_be_had_is_no_crash(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path))
    said: list[str] = []
    environments = Environments("no-such-package-at-all", options=["--offline", "--no-index"], say=said.append)
    with pytest.raises(LookupError):
        environments.python("1.0")
    assert said == ["installing no-such-package-at-all==1.0"]
    assert not list(tmp_path.glob("envs/*/ready")), "it is tried again the next time"
