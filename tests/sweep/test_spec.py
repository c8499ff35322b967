"""What a sweep is asked to do, from TOML and from flags; every mistake is one line."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from packaging.tags import sys_tags

from conformance import paths
from conformance.errors import UsageError
from conformance.sweep.spec import Environment, Sweep, Work, from_toml, torch_environments
from conformance.virtualenvs import suite_requirements

WORK = Work(targets=("cpu",))
DOCUMENT = paths.PACKAGE.parent / "docs" / "sweep.md"


def made(words: str) -> dict[str, str]:
    return {one.name: one.packages[0] for one in torch_environments(words, WORK)}


def test_a_range_is_the_newest_patch_of_each_minor_version() -> None:
    assert made("2.13..2.15") == {
        "torch-2.13": "torch~=2.13.0",
        "torch-2.14": "torch~=2.14.0",
        "torch-2.15": "torch~=2.15.0",
    }
    assert made("2.9..2.9") == {"torch-2.9": "torch~=2.9.0"}


def test_versions_with_and_without_a_patch() -> None:
    assert made("2.14.1, 2.15") == {"torch-2.14.1": "torch==2.14.1", "torch-2.15": "torch~=2.15.0"}


@pytest.mark.parametrize("words", ["2.15..2.11", "2.11..3.1", "newest", "2.11...2.15", ""])
def test_what_is_no_version_is_said(words: str) -> None:
    with pytest.raises(UsageError, match=r"is no (version|range) of torch"):
        made(words)


@pytest.fixture
def index() -> Iterator[str]:
    """A package index on loopback with three nightlies for this machine and one for another."""
    tag = next(iter(sys_tags()))
    names = [f"torch-2.16.0.dev202611{day}-{tag}.whl" for day in (13, 14, 15)]
    names += ["torch-2.16.0.dev20261116-cp27-cp27m-win32.whl", f"torch-2.15.0-{tag}.whl"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write("".join(f'<a href="{name}">{name}</a>' for name in names).encode())

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_nightlies_are_pinned_to_the_newest_and_the_one_before(index: str) -> None:
    found = torch_environments("nightly-1,nightly", WORK, where=Environment(name="_", indexes=(index,), pre=True))
    assert [one.packages[0] for one in found] == ["torch==2.16.0.dev20261114", "torch==2.16.0.dev20261115"]
    assert found[0].recipe().options[-2:] == ("--prerelease", "allow") and index in found[0].recipe().options
    with pytest.raises(UsageError, match="has 3 nightlies of torch for this machine: there is no nightly-3"):
        torch_environments("nightly-3", WORK, where=Environment(name="_", indexes=(index,)))


def test_an_environment_has_what_the_suite_needs_beside_torch() -> None:
    (one,) = torch_environments("2.15.0", WORK, beside=("triton==3.8.0",))
    packages = one.recipe().packages
    assert packages[:2] == ("torch==2.15.0", "triton==3.8.0")
    names = {re.split(r"[^\w-]", text)[0] for text in suite_requirements()}
    assert {"msgspec", "platformdirs", "click"} <= names and "torch" not in names
    assert not any(name.startswith("ray") for name in names), "Ray is for those who want it"


def test_the_same_recipe_is_the_same_folder_and_another_index_is_another() -> None:
    def folder(**changed: object) -> str:
        return Environment(name="a", packages=("torch==2.15.0",), **changed).recipe().folder_name()  # type: ignore[arg-type]

    assert folder() == folder() and folder().startswith("torch-2.15.0-")
    assert (
        len({folder(), folder(pre=True), folder(indexes=("http://a",)), folder(python="3.12"), folder(wheels="/w")})
        == 5
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a sweep needs environments"),
        ('[[environment]]\nname = "a"', "environment a: give it either packages to install or an interpreter"),
        ('[[environment]]\nname = "a/b"\npackages = ["x"]', "the environment's name 'a/b' must be letters"),
        ('[[environment]]\nname = "a"\npackages = ["x"]\n' * 2, "two environments are called a"),
        ('[[environment]]\nname = "a"\npackage = "x"', "environment a: Object contains unknown field package"),
        ('[[environment]]\nname = "a"\npackages = "x"', "environment a: Expected array, got str - at packages"),
        ('[work]\ntarget = ["cpu"]', "work: Object contains unknown field target"),
        ('[work]\ntimeout = "long"', "work: Expected float, got str - at timeout"),
        ("torch = 3", "Expected str | array, got int - at torch"),
        ("= 3", "is not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        from_toml(file, Work())
    assert told in str(error.value) and "\n" not in str(error.value)


def test_names_of_files_are_meant_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[work]\nfolder = "mine"\n[[environment]]\nname = "a"\ninterpreter = "bin/python"\nwork = {targets = ["sm_90"]}\n'
    )
    (one,) = from_toml(file, Work(threads=3)).environments
    assert one.interpreter == str(tmp_path / "bin/python")
    assert (one.work.folder, one.work.targets, one.work.threads) == (str(tmp_path / "mine"), ("sm_90",), 3)


def test_the_files_of_the_document_are_sweeps(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.S)
    assert len(blocks) >= 2
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.toml"
        file.write_text(block)
        assert isinstance(from_toml(file, Work()), Sweep)
