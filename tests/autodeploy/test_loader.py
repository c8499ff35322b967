"""Finding and loading AutoDeploy, with a tree of our own in place of TensorRT-LLM's."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.backends.autodeploy import loader
from conformance.backends.autodeploy.loader import Loaded, Missing, checkout, find


def one_line(error: pytest.ExceptionInfo[Missing]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_nothing_installed_says_how_to_get_it(nothing):
    with pytest.raises(Missing) as error:
        find()
    assert one_line(error).startswith("AutoDeploy is not installed: set TRTLLM_SRC")


def test_a_wrong_path(tmp_path):
    with pytest.raises(Missing) as error:
        find(tmp_path / "no" / "such")
    assert "no such folder" in one_line(error)


def test_a_folder_without_auto_deploy(tmp_path):
    with pytest.raises(Missing) as error:
        find(tmp_path)
    assert "not a TensorRT-LLM checkout with AutoDeploy" in one_line(error)


def test_a_folder_inside_a_checkout_names_the_checkout(tree):
    with pytest.raises(Missing) as error:
        find(tree / "tensorrt_llm")
    assert one_line(error).endswith(f"did you mean {tree}?")


def test_a_checkout_without_git_has_a_version(tree):
    found = checkout(tree)
    assert (found.form, found.version, found.root) == ("checkout", "9.8.7", tree.resolve())


def test_a_checkout_with_git_has_a_commit_and_shows_edits(tree):
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    number, commit = checkout(tree).version.split()
    assert number == "9.8.7" and len(commit) == 10
    (tree / "tensorrt_llm" / "mapping.py").write_text("# edited\n")
    assert checkout(tree).version == f"9.8.7 {commit}+"


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_a_named_checkout_comes_before_what_is_installed(nothing, tree, tmp_path, monkeypatch):
    package = tmp_path / "site" / "llmc"
    (package / "transform").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find().form == "standalone"
    monkeypatch.setenv("TRTLLM_SRC", str(tree))
    assert find().form == "checkout"


def test_the_renamed_standalone_package_is_found(nothing, tmp_path, monkeypatch):
    package = tmp_path / "site" / "paragraf"
    (package / "transform").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find().package == "paragraf"


def test_a_stub_of_tensorrt_llm_is_not_autodeploy(nothing, tmp_path, monkeypatch):
    stub = tmp_path / "site" / "tensorrt_llm"
    stub.mkdir(parents=True)
    (stub / "__init__.py").write_text("raise RuntimeError('ran')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(Missing):
        find()


def test_a_tree_on_the_path_is_a_checkout_until_it_is_built(nothing, tree, monkeypatch):
    monkeypatch.syspath_prepend(str(tree))
    assert find().form == "checkout"
    (tree / "tensorrt_llm" / "bindings.so").touch()
    assert find().form == "installed"


def test_the_cache_is_the_last_to_be_looked_at(nothing, tree, tmp_path, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    tree.rename(tmp_path / "cache" / "TensorRT-LLM")
    assert find().root == (tmp_path / "cache" / "TensorRT-LLM").resolve()


# ---------------------------------------------------------------------------------------------------- loading


def test_no_init_runs_and_what_needs_compiling_is_missing(tree):
    module = Loaded(checkout(tree)).module("compat")
    assert module.BUILT is False
    assert module.MISSING == "tensorrt_llm.mapping"


def test_legacy_passes_are_reached_and_missing_ones_are_named(tree):
    loaded = Loaded(checkout(tree))
    assert loaded.legacy("remove_copy_pass").NAME == "legacy"
    with pytest.raises(Missing) as error:
        loaded.legacy("patterns.residual_add_norm")
    assert "patterns.residual_add_norm is not in checkout" in one_line(error)


def test_nothing_stays_patched(tree):
    before, finders = set(sys.modules), list(sys.meta_path)
    loaded = Loaded(checkout(tree))
    loaded.module("compat")
    assert sys.meta_path == finders
    assert not {name for name in set(sys.modules) - before if name.startswith("tensorrt_llm")}
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tensorrt_llm")


def test_while_active_a_module_is_the_same_object_every_time(tree):
    loaded = Loaded(checkout(tree))
    first = loaded.module("compat")
    with loaded.active(), loaded.active():
        assert sys.modules["tensorrt_llm._torch.auto_deploy.compat"] is first
    assert "tensorrt_llm" not in sys.modules


def test_another_tensorrt_llm_comes_back_afterwards(tree, monkeypatch):
    other = type(sys)("tensorrt_llm")
    monkeypatch.setitem(sys.modules, "tensorrt_llm", other)
    loaded = Loaded(checkout(tree))
    with loaded.active():
        assert sys.modules["tensorrt_llm"] is not other
    assert sys.modules["tensorrt_llm"] is other


def test_a_failure_inside_leaves_nothing_behind(tree):
    loaded = Loaded(checkout(tree))
    with pytest.raises(ZeroDivisionError), loaded.active():
        raise ZeroDivisionError
    assert not any(isinstance(finder, loader._Answer) for finder in sys.meta_path)


def test_a_missing_dependency_is_named_with_its_wheel(tree, monkeypatch):
    monkeypatch.setattr(loader, "_loaded", None)
    compat = tree / "tensorrt_llm" / "_torch" / "auto_deploy" / "compat.py"
    compat.write_text("raise ModuleNotFoundError(\"No module named 'flashinfer'\", name='flashinfer')\n")
    with pytest.raises(Missing) as error:
        loader.load(tree)
    assert "needs 'flashinfer', which is not installed: pip install flashinfer-python" in one_line(error)


def test_a_broken_dependency_is_one_line(tree, monkeypatch):
    monkeypatch.setattr(loader, "_loaded", None)
    (tree / "tensorrt_llm" / "_torch" / "auto_deploy" / "compat.py").write_text(
        "raise OSError('libcuda.so\\nnot found')\n"
    )
    with pytest.raises(Missing) as error:
        loader.load(tree)
    assert "does not import here: OSError: libcuda.so" in one_line(error)


def test_without_autodeploy_every_stage_is_unavailable_for_the_same_reason(nothing, monkeypatch):
    from conformance.backends.autodeploy import AutoDeployBackend
    from conformance.stage import STAGES
    from conformance.target import CPU

    monkeypatch.setattr(loader, "_loaded", None)
    backend = AutoDeployBackend()
    reasons = backend.unavailable(CPU)
    assert list(reasons) == list(STAGES)
    assert set(reasons.values()) == {f"AutoDeploy is not installed: {loader.MEND}"}
    assert backend.versions() == {}


def test_a_run_without_autodeploy_says_so_and_does_not_pass(nothing, tmp_path):
    """In processes of their own: what a process has loaded stays."""
    import json
    import os
    import subprocess
    import sys

    record = tmp_path / "run.jsonl"
    base = [
        sys.executable,
        "-m",
        "conformance.cli",
        "run",
        "-b",
        "autodeploy",
        "-m",
        "norm.rmsnorm",
        "-n",
        "1",
        "--fresh",
    ]
    # one that is installed here would be found
    if loader.installed() or loader.standalone():
        pytest.skip("an AutoDeploy is installed in this environment")
    env = {**os.environ, "CONFORMANCE_CACHE": str(tmp_path / "no-cache"), "COLUMNS": "200"}
    done = subprocess.run([*base, "--record", str(record)], capture_output=True, text=True, env=env)
    said = f"AutoDeploy is not installed: {loader.MEND}"
    assert done.returncode == 2
    assert (
        done.stderr.strip().splitlines()[-1].startswith(f"conformance: nothing of autodeploy could be observed: {said}")
    )
    cells = [json.loads(line) for line in record.read_text().splitlines()[1:]]
    assert {(cell["verdict"], cell["reason"]) for cell in cells} == {("unavailable", said)} and len(cells) == 7
    assert subprocess.run([*base, "--allow-unavailable"], capture_output=True, env=env).returncode == 0
