"""From finding to test: sessions, findings, confirming, pinning, and what people do wrong."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis.database import DirectoryBasedExampleDatabase

from conformance.errors import UsageError
from conformance.fuzz import commands, pinned
from conformance.fuzz.coverage import Tally
from conformance.fuzz.database import Keyed, open_database
from conformance.fuzz.example import Call, Example, Given, read
from conformance.fuzz.finding import Findings, confirm, finding_of, key_of, normalized
from conformance.fuzz.home import home
from conformance.fuzz.repro import script
from conformance.fuzz.search import PROFILES, search
from conformance.fuzz.served import runner_for
from conformance.fuzz.session import Session
from conformance.library import load
from conformance.oracle import Difference
from conformance.target import CPU
from conformance.verdict import Kind
from tests.fuzz.faulty_backends import LyingBackend

LIBRARY = load()
QUICK = replace(PROFILES["ci"], forms=4, examples=40)
ODD = Example("pointwise.chain", (Call({"b": 2, "n": 3}, (Given(), Given())),))
WRONG = Difference(Kind.WRONG_RESULT, "output 0", "6 of 6 elements out of tolerance")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known in fresh processes too."""
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "tests.fuzz.faulty_backends")
    monkeypatch.setenv("LYING_FAULT", "odd sizes")


def session(backend: Any, folder: Path, names: tuple[str, ...] = ("pointwise.chain",), **more: Any) -> Session:
    database = DirectoryBasedExampleDatabase(folder / "examples")
    # A backend that compiles nothing captures nothing, and the model of guards would rightly complain.
    more = {"guards": False, "graphs": False, **more}
    return Session(backend, CPU, {name: LIBRARY[name] for name in names}, QUICK, database, minutes=2.0, **more)


def test_a_finding_is_confirmed_kept_and_found_once(kept: Path, lying: None) -> None:
    first = session(LyingBackend("odd sizes"), kept)
    first.run()
    assert [(f.stage, f.kind, f.confirmed) for f in first.new] == [("runtime", "wrong_result", True)]
    assert (kept / "examples").is_dir() and any((kept / "examples").rglob("*"))
    second = session(LyingBackend("odd sizes"), kept)
    assert second.rounds == {"pointwise.chain": 0}, "it goes on where the first ended"
    second.run()
    assert second.new == [] and second.tally.examples


def test_what_a_fresh_process_does_not_show_is_no_finding(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "tests.fuzz.faulty_backends")
    monkeypatch.setenv("LYING_FAULT", "none")
    finding = confirm(finding_of(ODD, WRONG, "lying", "cpu"))
    assert not finding.confirmed


def test_a_process_that_died_is_a_finding_of_the_next_session(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "tests.fuzz.faulty_backends")
    monkeypatch.setenv("LYING_FAULT", "segfault")
    deadly = replace(ODD, calls=(replace(ODD.calls[0], dims={"b": 2, "n": 17}),))
    (kept / "state" / "fuzz").mkdir(parents=True)
    (kept / "state" / "fuzz" / "lying-cpu-999999999.current").write_text(json.dumps(deadly.to_json()))
    later = session(LyingBackend("none"), kept)
    found = [confirm(finding) for finding in later.died()]
    assert [(f.kind, f.confirmed) for f in found] == [("crash", True)]
    assert "signal 11" in found[0].detail


@pytest.mark.slow  # half a minute, most of it imports
def test_a_process_that_lost_its_gpu_ends_and_another_goes_on(kept: Path) -> None:
    options = "-b lying -m pointwise.chain --plugin tests.fuzz.faulty_backends --no-guards --profile ci --json"
    env = {**os.environ, "LYING_FAULT": "lost gpu", "CONFORMANCE_HOME": str(kept)}
    ended = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "fuzz", *options.split()],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "lost its GPU; another goes on" in ended.stderr and ended.returncode == 1, ended.stderr
    assert json.loads(ended.stdout)["findings"] == 1 and "misaligned address" in ended.stderr


@pytest.mark.slow
def test_a_hang_is_cut_off_and_the_run_goes_on(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "tests.fuzz.faulty_backends")
    monkeypatch.setenv("LYING_FAULT", "hang")
    one = session(LyingBackend("hang"), kept, ("pointwise.chain", "norm.rmsnorm"), patience=1.0)
    one.run()
    assert [(f.kind, f.confirmed, f.example.micrograph) for f in one.new] == [("timeout", True, "pointwise.chain")]
    assert dict(one.new[0].example.calls[-1].dims) == {"b": 2, "n": 3}
    assert one.rounds == {"pointwise.chain": 0, "norm.rmsnorm": 0} and one.tally.examples, "the run goes on"


@pytest.mark.slow  # a minute of waiting
def test_a_hang_that_hears_no_signal_ends_the_process_and_another_goes_on(kept: Path) -> None:
    options = (
        "-b lying -m pointwise.chain --plugin tests.fuzz.faulty_backends --patience 6 --no-guards --profile ci --json"
    )
    env = {**os.environ, "LYING_FAULT": "deaf hang", "CONFORMANCE_HOME": str(kept)}
    ended = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "fuzz", *options.split()],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "another goes on" in ended.stderr, ended.stderr
    assert ended.returncode == 1, ended.stderr
    assert json.loads(ended.stdout)["findings"] == 1
    assert [f.kind for f in Findings(kept / "state" / "fuzz" / "findings.jsonl").known.values()] == ["timeout"]


def test_equal_findings_have_one_key() -> None:
    one, other = (
        Difference(Kind.CRASH, "call", f"CppCompileError: /tmp/x{n}/k.cpp:{n}: tmp{n} has no member") for n in (1, 22)
    )
    assert key_of("a.b", None, one) == key_of("c.d", None, other)
    assert key_of("a.b", None, WRONG) != key_of("c.d", None, WRONG)
    assert normalized("error 0xdeadbeef at /a/b/c.py:12 in buf12") == normalized("error 0x1 at /z.py:9 in buf3")


def test_pinned_examples_are_micrographs(kept: Path) -> None:
    file = pinned.write(finding_of(ODD, WRONG, "lying", "cpu"), kept / "examples")
    (made,) = pinned.micrographs("conformance_micrographs.pinned", kept / "examples")
    assert made.name().startswith("pinned.chain") and made.dims["n"] == 3
    assert [tuple(x.shape) for x in made.example()] == [
        tuple(x.shape) for x in read(file).calls[0].inputs(LIBRARY["pointwise.chain"])
    ]
    assert all((a == b).all() for a, b in zip(made.example(0), made.example(0), strict=True))


# Written out; drawn anew, for eager and for the compiler.
@pytest.mark.parametrize("size", [3, pytest.param(300, marks=pytest.mark.slow)])
def test_the_repro_needs_only_torch(kept: Path, size: int) -> None:
    calls = (replace(ODD.calls[0], dims={"b": 2, "n": size}),) * 2
    text = script(finding_of(replace(ODD, calls=calls), WRONG, "inductor", "cpu"))
    assert "conformance" not in text.split('"""', 2)[2]
    file = kept / "repro.py"
    file.write_text(text.replace("torch.compile(", "torch.compile(backend='eager', model="))
    ended = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}, cwd=kept
    )
    assert ended.returncode == 0, ended.stderr
    assert "call 1: as eager" in ended.stdout and "call 2: as eager" in ended.stdout


@pytest.mark.parametrize(
    "backend, target, door",
    [
        ("inductor", "cuda", "torch.compile(module())"),
        ("inductor_cudagraphs", "cuda", 'torch.compile(module, mode="reduce-overhead")'),
        ("torch_tensorrt", "sm_90", "torch_tensorrt.dynamo.compile(program"),
        ("autodeploy", "cuda", "torch.export.export(module.eval(), inputs())"),
    ],
)
def test_the_repro_goes_through_the_same_door(backend: str, target: str, door: str) -> None:
    text = script(finding_of(ODD, WRONG, backend, target))
    ast.parse(text)
    assert door in text and "conformance" not in text.split('"""', 2)[2]
    assert (".to('cuda')" in text) is (backend != "autodeploy")
    assert ("this needs one" in text) is (target == "sm_90")


# ------------------------------------------------------------------------------------------- bad input


def test_a_corrupt_database_and_state_do_not_stop_a_session(kept: Path, lying: None) -> None:
    database = DirectoryBasedExampleDatabase(kept / "examples")
    place = Keyed(database, "lying/cpu/pointwise.chain/0")
    place.save(b"any", b"\xff\x00nonsense")
    (home() / "lying-cpu.json").write_text("{not json")
    (home() / "findings.jsonl").write_text('{"id": 1}\nnonsense\n')
    one = session(LyingBackend("none"), kept, findings=Findings())
    one.run()
    assert one.tally.examples and not one.new
    assert "damaged" in " ".join(one.problems) and len(one.findings.problems) == 2
    assert any("example database" in problem for problem in one.problems), one.problems


UNHAPPY = '''
from conformance.micrograph import Contract, Micrograph, Tensor

class Unhappy(Micrograph):
    """Rejects its own specs."""
    dims = {"n": 4, "m": 5}
    inputs = (Tensor("n"), Tensor("m"))
    contract = Contract()

    def forward(self, x, y):
        raise ValueError("never")
'''


def test_a_micrograph_that_rejects_its_own_specs_is_named_and_left(kept: Path) -> None:
    (kept / "bad.py").write_text(UNHAPPY)
    library = {**load(kept / "bad.py"), "pointwise.chain": LIBRARY["pointwise.chain"]}
    one = Session(
        LyingBackend("none"), CPU, library, QUICK, DirectoryBasedExampleDatabase(kept / "db"), minutes=2.0, graphs=False
    )
    one.run()
    assert any("bad.unhappy" in p and "rejects every input" in p for p in one.problems), one.problems
    assert one.tally.examples, "the run goes on"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-m", "no.such"], "unknown micrograph"),
        (["-b", "inducter"], "did you mean inductor"),
        (["-t", "sm_1"], "unknown target"),
        (["--database", "ftp://x"], "only folders and redis://"),
        (["--database", __file__], "is a file"),
    ],
)
def test_mistakes_are_one_line(kept: Path, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(commands.fuzz, [*arguments, "--minutes", "0.01", "--alone"])
    assert isinstance(result.exception, UsageError) and said in str(result.exception)


def test_a_damaged_example_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"schema": "conformance/example/2", "calls": 3}')
    with pytest.raises(UsageError, match=r"broken\.json is damaged"):
        read(file)


def test_redis_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(UsageError, match="pip install"):
        open_database("redis://localhost:6379")


# ------------------------------------------------------------------------------------------------- redis


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("redis", reason="the package redis is not installed")
    program = shutil.which("redis-server") or pytest.skip("redis-server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [program, "--port", str(port), "--save", "", "--dir", str(tmp_path)], stdout=subprocess.DEVNULL
    )
    url = f"redis://127.0.0.1:{port}"
    try:
        for _ in range(100):
            with contextlib.suppress(UsageError):
                open_database(url)
                break
            time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


def test_a_failing_example_is_shared_by_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_server: str, lying: None
) -> None:
    """What one machine found, another tries first."""
    counts = []
    for machine in ("one", "other"):
        monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / machine))
        runner = runner_for(LyingBackend("odd sizes"), CPU, LIBRARY["pointwise.chain"], Tally())
        database = Keyed(open_database(redis_server), "lying/cpu/pointwise.chain/0")
        assert search(runner, replace(QUICK, derandomize=False, examples=200), 0, database) is not None
        counts.append(list(database.fetch(b"any")))
        runner.close()
    assert counts[0] and {*counts[0]} & {*counts[1]}


def test_a_database_that_goes_away_does_not_end_the_session(kept: Path, redis_server: str) -> None:
    from redis import Redis

    database = open_database(redis_server)
    Redis.from_url(redis_server).shutdown(nosave=True)
    one = Session(
        LyingBackend("none"),
        CPU,
        {"pointwise.chain": LIBRARY["pointwise.chain"]},
        QUICK,
        database,
        minutes=2.0,
        graphs=False,
    )
    one.run()
    assert one.tally.examples and not one.new
    assert sum("database" in problem for problem in one.problems) == 1, one.problems
