"""From finding to test: sessions, findings, confirming, pinning, and what people do wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis.database import DirectoryBasedExampleDatabase

from conformance.errors import UsageError
from conformance.fuzz import commands, pinned
from conformance.fuzz.database import open_database
from conformance.fuzz.example import Call, Example, Given, read
from conformance.fuzz.finding import Findings, confirm, finding_of, key_of, normalized
from conformance.fuzz.repro import script
from conformance.fuzz.search import PROFILES
from conformance.fuzz.session import Session
from conformance.micrograph import load
from conformance.oracle import Difference
from conformance.target import CPU
from conformance.verdict import Kind
from tests.fuzz.lying import LyingBackend

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
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "tests.fuzz.lying")
    monkeypatch.setenv("LYING_FAULT", "odd sizes")


def session(backend: Any, folder: Path, names: tuple[str, ...] = ("pointwise.chain",), **more: Any) -> Session:
    database = DirectoryBasedExampleDatabase(folder / "examples")
    return Session(backend, CPU, {name: LIBRARY[name] for name in names}, QUICK, database, minutes=2.0, graphs=False, **more)


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
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "tests.fuzz.lying")
    monkeypatch.setenv("LYING_FAULT", "none")
    finding = confirm(finding_of(ODD, WRONG, "lying", "cpu"))
    assert not finding.confirmed


def test_a_process_that_died_is_a_finding_of_the_next_session(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "tests.fuzz.lying")
    monkeypatch.setenv("LYING_FAULT", "segfault")
    deadly = replace(ODD, calls=(replace(ODD.calls[0], dims={"b": 2, "n": 17}),))
    (kept / "fuzz").mkdir()
    (kept / "fuzz" / "lying-cpu-999999999.current").write_text(json.dumps(deadly.to_json()))
    later = session(LyingBackend("none"), kept)
    found = [confirm(finding) for finding in later.died()]
    assert [(f.kind, f.confirmed) for f in found] == [("crash", True)]
    assert "signal 11" in found[0].detail


def test_equal_findings_have_one_key() -> None:
    one, other = (Difference(Kind.CRASH, "call", f"CppCompileError: /tmp/x{n}/k.cpp:{n}: tmp{n} has no member") for n in (1, 22))
    assert key_of("a.b", None, one) == key_of("c.d", None, other)
    assert key_of("a.b", None, WRONG) != key_of("c.d", None, WRONG)
    assert normalized("error 0xdeadbeef at /a/b/c.py:12 in buf12") == normalized("error 0x1 at /z.py:9 in buf3")


def test_pinned_examples_are_micrographs(kept: Path) -> None:
    file = pinned.write(finding_of(ODD, WRONG, "lying", "cpu"), kept / "examples")
    (made,) = pinned.micrographs("conformance_micrographs.pinned", kept / "examples")
    assert made.name().startswith("pinned.chain") and made.dims["n"] == 3
    assert [tuple(x.shape) for x in made.example()] == [tuple(x.shape) for x in read(file).calls[0].inputs(LIBRARY["pointwise.chain"])]
    assert all((a == b).all() for a, b in zip(made.example(0), made.example(0), strict=True))


def test_the_repro_needs_only_torch(kept: Path) -> None:
    text = script(finding_of(ODD, WRONG, "inductor", "cpu"))
    assert "conformance" not in text.split('"""', 2)[2]
    file = kept / "repro.py"
    file.write_text(text.replace("torch.compile(", "torch.compile(backend='eager', model="))
    ended = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}, cwd=kept)
    assert ended.returncode == 0, ended.stderr
    assert "call 1: as eager" in ended.stdout


# ------------------------------------------------------------------------------------------- bad input


def test_a_corrupt_database_and_state_do_not_stop_a_session(kept: Path, lying: None) -> None:
    (kept / "examples" / "0123456789abcdef").mkdir(parents=True)
    (kept / "examples" / "0123456789abcdef" / "fedcba").write_bytes(b"\xff\x00nonsense")
    (kept / "fuzz").mkdir()
    (kept / "fuzz" / "lying-cpu.json").write_text("{not json")
    (kept / "fuzz" / "findings.jsonl").write_text('{"id": 1}\nnonsense\n')
    one = session(LyingBackend("none"), kept, findings=Findings())
    one.run()
    assert one.tally.examples and not one.new
    assert "damaged" in " ".join(one.problems) and len(one.findings.problems) == 2


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
    one = Session(LyingBackend("none"), CPU, library, QUICK, DirectoryBasedExampleDatabase(kept / "db"), minutes=2.0, graphs=False)
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
    result = CliRunner().invoke(commands.fuzz, [*arguments, "--minutes", "0.01"])
    assert isinstance(result.exception, UsageError) and said in str(result.exception)


def test_a_damaged_example_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"schema": "conformance/example/1", "calls": 3}')
    with pytest.raises(UsageError, match=r"broken\.json is damaged"):
        read(file)


def test_redis_without_the_package_says_what_to_install() -> None:
    pytest.importorskip("hypothesis")
    try:
        import redis  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match="pip install"):
            open_database("redis://localhost:6379")
