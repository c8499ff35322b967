"""A user's mistake is one line and exit code 2; the suite's outcome is 0 or 1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance import cli, paths

MICROGRAPH = '''
import torch
from conformance import Contract, Micrograph, Tensor

class Sum(Micrograph):
    """A sum."""
    inputs = (Tensor("4 5"),)
    contract = Contract()
    def forward(self, x):
        return x.sum(-1)
'''


def conformance(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(args))
    out = capsys.readouterr()
    return int(ended.value.code or 0), out.out, out.err


def mine(folder: Path, text: str = MICROGRAPH, **more: str) -> list[str]:
    home = folder / "mine"
    home.mkdir(exist_ok=True)
    (home / "small.py").write_text(text)
    for name, source in more.items():
        (home / f"{name}.py").write_text(source)
    return ["--micrographs", str(home), "--expectations", str(folder)]


def test_every_glob_counts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = conformance(capsys, "list", "-m", "norm.rmsnorm", "-m", "mlp.swiglu")
    assert code == 0 and "norm.rmsnorm" in out and "mlp.swiglu" in out and "norm.layernorm" not in out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", "-s", "captur"], "unknown stage 'captur': did you mean capture?"),
        (["run", "-b", "inducter"], "unknown backend 'inducter': did you mean inductor or"),
        (["run", "-b", "eager", "-t", "sm_91"], "unknown target 'sm_91'"),
        (["run", "-b", "eager", "-m", "norm.nothing"], "unknown micrograph 'norm.nothing'"),
        (["run", "--resume"], "--resume needs --record"),
        (["run", "--plugin", "no_such_module"], "no plugin 'no_such_module'"),
        (["show", "fusion/inductor/cpu"], "not a cell"),
        (["show", "fusio/inductor/cpu/norm.rmsnorm"], "unknown stage 'fusio'"),
        (["show", "fusion/eager/cpu/norm.nothing"], "unknown micrograph"),
        (["show", "fusion/inductor/sm_*/norm.rmsnorm"], "several targets are shown of codegen/inductor only"),
        (["show", "codegen/inductor/sm_7*/norm.rmsnorm"], "unknown target 'sm_7*'"),
        (["show", "fusion/eager/cpu/norm.rmsnorm", "--record", "none.jsonl"], "cannot read the record none.jsonl"),
        (["list", "-m", "nothing*"], "unknown micrograph 'nothing*'"),
        (["frobnicate"], "unknown command 'frobnicate'"),
        (["run", "--frobnicate"], "No such option"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], args: list[str], says: str) -> None:
    code, _, err = conformance(capsys, *args)
    assert code == 2 and says in err and len(err.strip().splitlines()) == 1, err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_of_the_sort\n", "does not import: ModuleNotFoundError"),
        ("def f(:\n", "does not import: SyntaxError"),
        (MICROGRAPH.replace("contract = Contract()", ""), "Sum has no contract"),
        (MICROGRAPH.replace('"4 5"', '"b 5"'), "not made of the dims"),
        (MICROGRAPH.replace("x.sum(-1)", "x.sum(7)"), "does not run in eager: IndexError"),
    ],
)
def test_a_bad_micrograph_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, says: str) -> None:
    code, _, err = conformance(capsys, "run", "-b", "eager", "-n", "1", *mine(tmp_path, text))
    assert code == 2 and says in err and "Traceback" not in err, err


def test_a_run_records_shows_and_reuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    args = ["run", "-b", "eager", "-n", "1", "--record", str(tmp_path / "r.jsonl"), *mine(tmp_path)]
    code, out, _ = conformance(capsys, *args)
    assert code == 0 and "small.sum" in out and "1 of 7" in out
    code, _, err = conformance(capsys, *args)
    assert code == 0 and "7 of 7 cells are reused" in err
    lines = [json.loads(text) for text in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert lines[0]["schema"].startswith("conformance/") and all(line["reused"] for line in lines[1:])
    (tmp_path / "mine" / "small.py").write_text(MICROGRAPH.replace("A sum.", "Another sum."))
    sys.modules.pop("conformance_micrographs.small", None)
    code, _, err = conformance(capsys, *args)
    assert code == 0 and "reused" not in err
    code, out, _ = conformance(capsys, "show", "runtime/eager/cpu/small.sum", "--record", str(tmp_path / "r.jsonl"))
    assert code == 0 and "pass" in out


FAULT = """
import os, signal, time
from conformance.backends.eager import EagerBackend
original = EagerBackend.compile
def compile(self, case):
    if case.micrograph.name() == "small.crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if case.micrograph.name() == "small.hang":
        time.sleep(1000)
    if case.micrograph.name() == "small.slow":
        time.sleep(float(os.environ.get("SLOW", "0")))
    return original(self, case)
EagerBackend.compile = compile
"""
SEVERAL = MICROGRAPH + "".join(
    f'''
class {name}(Micrograph):
    """{name}."""
    inputs = (Tensor("4 5"),)
    contract = Contract()
    def forward(self, x):
        return x * {index}.0
'''
    for index, name in enumerate(("Crash", "Hang", "Slow", "Last"), 2)
)


def command(folder: Path, *args: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "conformance.cli",
        "run",
        "-b",
        "eager",
        "--plugin",
        "faulty",
        *mine(folder, SEVERAL),
        *args,
    ]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "faulty.py").write_text(FAULT)
    return {**os.environ, "PYTHONPATH": f"{paths.PACKAGE.parent}{os.pathsep}{tmp_path}"}


@pytest.mark.slow  # each fault alone: tests/chaos
def test_a_crash_is_an_error_a_hang_a_timeout_and_the_run_goes_on(tmp_path: Path, env: dict[str, str]) -> None:
    args = command(tmp_path, "-n", "2", "--cell-timeout", "25", "--record", str(tmp_path / "r.jsonl"))
    done = subprocess.run(args, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    cells = [json.loads(text) for text in (tmp_path / "r.jsonl").read_text().splitlines()][1:]
    verdicts = {
        line["cell"].split("/")[0] + " " + line["cell"].split(".")[1]: (line["verdict"], line["reason"])
        for line in cells
    }
    assert done.returncode == 1, done.stderr
    assert len(cells) == 35
    assert verdicts["capture crash"][0] == "error" and "SIGSEGV" in verdicts["capture crash"][1]
    assert verdicts["capture hang"][0] == "timeout" and "25 s" in verdicts["capture hang"][1]
    assert verdicts["runtime last"][0] == verdicts["runtime sum"][0] == "pass"
    assert "Traceback" not in done.stderr


@pytest.mark.slow  # tests/chaos kills the controller of smaller runs
def test_a_killed_run_is_resumed_where_it_was(tmp_path: Path, env: dict[str, str]) -> None:
    path = tmp_path / "r.jsonl"
    args = command(tmp_path, "-n", "1", "-m", "small.[l-s]*", "--record", str(path))
    running = subprocess.Popen(
        args,
        env={**env, "SLOW": "300"},
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (path.exists() and path.read_text().count("\n") >= 8):
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = path.read_text()
    with path.open("a") as file:
        file.write('{"cell": "capt')
    done = subprocess.run([*args, "--resume"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert path.read_text().startswith(kept), "what was recorded is kept as it was"
    cells = [json.loads(text)["cell"] for text in path.read_text().splitlines()[1:]]
    assert len(cells) == len(set(cells)) == 21
