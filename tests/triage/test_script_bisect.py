"""Scripts over versions. Each version is a Python that says its version in a variable and has no torch."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.tags import sys_tags

from conformance.errors import UsageError
from conformance.triage.bisect_command import bisect
from conformance.triage.script_bisect import ScriptBisect, Seen, in_index, verdict
from conformance.virtualenvs import Environments

VERSIONS = ["2.6.0", "2.9.1", "2.11.0", "2.12.0", "2.13.0", "2.14.1", "2.15.0"]
BROKEN_SINCE = 'import os, sys\nsys.exit(os.environ["VERSION"] >= "2.13")\n'


@pytest.fixture
def pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    found = {}
    for version in VERSIONS:
        path = tmp_path / f"python-{version}"
        path.write_text(f'#!/bin/sh\nVERSION={version.zfill(6)} exec "{sys.executable}" -S "$@"\n')
        path.chmod(0o755)
        found[version] = str(path)
    return found


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "bug.py"
    path.write_text(text)
    return path


def test_the_first_bad_version_is_found_with_few_runs(tmp_path: Path, pythons: dict[str, str]) -> None:
    search = ScriptBisect(script(tmp_path, BROKEN_SINCE), Environments("torch", known=pythons))
    seen, found = search.search(VERSIONS)
    assert (found.first_bad, found.last_good) == ("2.13.0", "2.12.0")
    assert len(seen) < len(VERSIONS)
    assert seen["2.15.0"].code == 1 and seen["2.6.0"].right


def test_answers_are_kept(tmp_path: Path, pythons: dict[str, str]) -> None:
    file = script(tmp_path, BROKEN_SINCE)
    ScriptBisect(file, Environments("torch", known=pythons)).search(VERSIONS)
    gone = dict.fromkeys(VERSIONS, "/no/such/python")
    assert ScriptBisect(file, Environments("torch", known=gone)).search(VERSIONS)[1].first_bad == "2.13.0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pass", "it never fails: right in 2.6.0 and in 2.15.0"),
        ("raise ValueError('always')", "it fails in 2.6.0, too: choose an older --good"),
        (BROKEN_SINCE.replace(">=", "<"), "it fails in 2.6.0 and is right in 2.15.0: it was mended in between"),
    ],
)
def test_where_there_is_nothing_to_search(tmp_path: Path, pythons: dict[str, str], text: str, said: str) -> None:
    search = ScriptBisect(script(tmp_path, text), Environments("torch", known=pythons))
    assert search.search(VERSIONS)[1].said == said


def test_a_table_of_a_folder(tmp_path: Path, pythons: dict[str, str]) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "broken.py").write_text(BROKEN_SINCE)
    (folder / "right.py").write_text("pass")
    options = [word for version, path in pythons.items() for word in ("--python", f"{version}={path}")]
    done = CliRunner().invoke(
        bisect, [str(folder), "--versions", ",".join(VERSIONS), "--json", *options], standalone_mode=False
    )
    assert done.exception is None and done.return_value == 0
    rows = json.loads(done.stdout)
    assert rows["broken"]["first_bad"] == "2.13.0"
    assert rows["right"]["first_bad"] is None and rows["right"]["said"] == "it never fails"
    assert [one["code"] for one in rows["broken"]["versions"].values()] == [0, 0, 0, 0, 1, 1, 1]


def test_a_row_of_versions() -> None:
    def row(signs: str) -> list[Seen]:
        return [Seen(f"2.{n}.0", int(sign == "x"), skipped="no wheel" * (sign == "-")) for n, sign in enumerate(signs)]

    assert verdict(row("..x-x")).first_bad == "2.2.0"
    assert verdict(row("..-xx")).last_good == "2.1.0"
    assert verdict(row(".xx.")).said == "right again since 2.3.0"
    assert verdict(row("xx..")).said == "mended: right since 2.2.0"
    assert verdict(row("xx")).said == "it fails in every version"
    assert verdict(row("--")).said == "no version could be asked"


def test_an_index_lists_the_wheels_for_this_machine() -> None:
    tag = next(str(tag) for tag in sys_tags() if "linux" in str(tag))
    names = [
        f"torch-2.15.0-{tag}.whl",
        f"torch-2.16.0.dev20261101%2Bcpu-{tag}.whl",
        "torch-2.14.0-cp27-none-win32.whl",
        "x.whl",
    ]
    page = "".join(f'<a href="/whl/{name}">{name}</a>' for name in names).encode()

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/simple/torch/" else 404)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = f"http://127.0.0.1:{server.server_port}/simple"
        assert in_index("torch", index, pre=False) == ["2.15.0"]
        assert in_index("torch", index, pre=True) == ["2.15.0", "2.16.0.dev20261101+cpu"]
        with pytest.raises(UsageError, match="no list of triton at"):
            in_index("triton", index, pre=True)
        server.shutdown()
