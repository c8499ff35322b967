"""`conformance get autodeploy`, from a git repository on this disk."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.autodeploy.clone import get
from conformance.autodeploy.commands import get_command
from conformance.errors import UsageError


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "uploadpack.allowFilter=true")
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def origin(tree: Path) -> Path:
    (tree / "cpp").mkdir()
    (tree / "cpp" / "kernel.cu").write_text("not wanted\n")
    git(tree, "init", "-q", "-b", "main")
    git(tree, "config", "uploadpack.allowFilter", "true")
    git(tree, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    git(tree, "tag", "v1")
    (tree / "tensorrt_llm" / "version.py").write_text("__version__ = '9.9.0'\n")
    git(tree, "commit", "-qam", "two")
    return tree


def test_only_the_python_files_that_are_needed_of_one_commit(origin, tmp_path):
    found = get("HEAD", f"file://{origin}", tmp_path / "clone")
    assert found.version.startswith("9.9.0 ")
    assert (found.root / "tensorrt_llm" / "_torch" / "auto_deploy" / "config" / "default.yaml").is_file()
    assert not (found.root / "cpp").exists()
    assert git(found.root, "rev-list", "--count", "HEAD") == "1"


def test_a_second_get_moves_to_another_ref(origin, tmp_path):
    get("HEAD", f"file://{origin}", tmp_path / "clone")
    assert get("v1", f"file://{origin}", tmp_path / "clone").version.startswith("9.8.7 ")
    commit = git(origin, "rev-parse", "main")
    assert get(commit, f"file://{origin}", tmp_path / "clone").version == f"9.9.0 {commit[:10]}"


@pytest.mark.parametrize(("ref", "place"), [("HEAD", "no/such/place"), ("no-such-branch", "")])
def test_what_cannot_be_fetched_is_one_line_and_leaves_nothing(origin, tmp_path, ref, place):
    with pytest.raises(UsageError) as error:
        get(ref, f"file://{tmp_path / place if place else origin}", tmp_path / "clone")
    assert "\n" not in str(error.value)
    assert "without a network, set TRTLLM_SRC" in str(error.value)
    assert not (tmp_path / "clone").exists()


def test_a_folder_of_somebody_elses_is_left_alone(origin, tmp_path):
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty and not a clone"):
        get("HEAD", f"file://{origin}", tmp_path / "clone")
    assert (tmp_path / "clone" / "thesis.txt").read_text() == "mine"


def test_the_command_fills_the_cache(origin, tmp_path, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    result = CliRunner().invoke(get_command, ["autodeploy", "--ref", "v1", "--from", f"file://{origin}"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("checkout tensorrt_llm 9.8.7 ")
    assert (tmp_path / "cache" / "TensorRT-LLM" / "tensorrt_llm").is_dir()
