"""Environments made by uv: what cannot be made is one line of its column, the others go on, and the sweep exits with 2."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conformance.sweep.slot import interpreter
from conformance.sweep.spec import Environment
from conformance.sweep.summary import end
from conformance.virtualenvs import Recipe, make
from tests.sweep.support import null, run_here

pytestmark = pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")
OFFLINE = ("--offline", "--no-index")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setattr("conformance.sweep.spec.suite_requirements", lambda: ())


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the wheels of `small` 1.0, and of `needy` 1.0, which needs a `small` that is not there."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, requires in (("small", ""), ("needy", "Requires-Dist: small>=2\n")):
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            info = f"{name}-1.0.dist-info"
            wheel.writestr(f"{name}.py", "version = '1.0'\n")
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{info}/RECORD", "")
    return folder


def test_an_environment_is_made_once_and_has_what_was_asked_for(wheels: Path) -> None:
    said: list[str] = []
    recipe = Recipe(("small==1.0",), options=(*OFFLINE, "--find-links", str(wheels)))
    python = make(recipe, said.append)
    done = subprocess.run([python, "-c", "import small; print(small.version)"], capture_output=True, text=True)
    assert done.stdout.strip() == "1.0", done.stderr
    assert make(recipe, said.append) == python and said == ["installing small==1.0"]


@pytest.fixture
def index() -> Iterator[str]:
    """A package index on loopback that has nothing."""

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()


def broken(wheels: Path, index: str) -> dict[str, tuple[Environment, str]]:
    """Environments that cannot be made, and what is said of each."""
    here = {"wheels": str(wheels), "index_url": index}
    return {
        "wrong-version": (null("wrong-version", "1", packages=("small==9",), **here), "small==9"),
        "unresolvable": (null("unresolvable", "1", packages=("needy", "small==1.0"), **here), "needy"),
        "no-index": (null("no-index", "1", packages=("other",), index_url="http://127.0.0.1:9/simple"), "127.0.0.1:9"),
        "no-wheels": (
            null("no-wheels", "1", packages=("small",), wheels="/no/such/folder"),
            "no folder of wheels at /no/such/folder",
        ),
        "no-python": (
            Environment(name="no-python", interpreter="/no/such/python", work=null("x", "1").work),
            "no Python at /no/such/python",
        ),
    }


def test_each_that_cannot_be_made_is_one_line_and_the_others_go_on(
    tmp_path: Path, wheels: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "3")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    cases = broken(wheels, index)
    environments = [*(environment for environment, _ in cases.values()), null("good", "3")]
    scheduler, said = run_here(environments, tmp_path / "records")
    columns = {column.environment.name: column for column in scheduler.columns}
    for name, (_, told) in cases.items():
        assert columns[name].state == "failed"
        assert told in columns[name].problem and "\n" not in columns[name].problem, columns[name].problem
        assert len([line for line in said if line.startswith(f"{columns[name].name}: ")]) == 1
    assert (columns["good"].state, columns["good"].lines) == ("open", 21)
    ending = end(scheduler.columns, tmp_path / "records", 1.0, 1, allow_unavailable=False)
    assert ending.code(None) == ending.code("wrong") == 2 and len(ending.problems) == len(cases)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_an_environment_on_a_full_disk(
    small_disk: Path, wheels: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(small_disk))
    with pytest.raises(LookupError, match=r"no space left on the disk of .*: make room, or set CONFORMANCE_HOME"):
        interpreter(Environment(name="a", packages=("small==1.0",), wheels=str(wheels), index_url=index))


def test_a_record_on_a_full_disk_ends_there(small_disk: Path) -> None:
    scheduler, _ = run_here([null("big", "150")], small_disk)
    (column,) = scheduler.columns
    assert column.state == "failed"
    assert column.problem.endswith(
        "No space left on device; what was recorded before is kept, and --resume goes on from there"
    )
    assert len(next(small_disk.glob("big-*.jsonl")).read_bytes()) < 48 * 1024


def test_the_interpreter_of_an_environment_that_is_there_is_used_as_it_is() -> None:
    assert interpreter(Environment(name="a", interpreter=sys.executable)) == sys.executable
