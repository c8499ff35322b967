"""Expectations and known defects that are broken or made to do harm: one line that names the file and what is wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance import cli, expectations
from conformance.errors import UsageError
from conformance.fuzz import known

GOOD = {
    "expect": '[[expect]]\ncell = "runtime/inductor/cpu/a.b"\nkind = "wrong_result"\nurl = "https://x"\nwhy = "y"\n',
    "known": '[[known]]\nbackend = "inductor"\nkind = "crash"\nurl = "https://x"\nwhy = "y"\n',
}
LOADERS: dict[str, Any] = {"expect": expectations.load, "known": known.load}
VALUES = [
    "1",
    "true",
    "1.5",
    '"x"',
    "[]",
    '["x", 1]',
    "{}",
    "{ x = 1 }",
    "2026-11-15",
    "nan",
    '"\\u001b[31m"',
    '"\\u202e"',
]
EXPECT_FIELDS = ["cell", "kind", "verdict", "when", "url", "repro", "why", "unknown"]
KNOWN_FIELDS = ["backend", "kind", "detail", "graph", "when", "avoid", "repro", "url", "why", "unknown"]


def table(kind: str) -> dict[str, bytes]:
    """Whole files that are no such file."""
    good = GOOD[kind].encode()
    return {
        "binary": bytes(range(256)),
        "not UTF-8": b'[[expect]]\nwhy = "\xff"\n',
        "utf-16": GOOD[kind].encode("utf-16"),
        "words": b"hello there\n",
        "half": good[:40],
        "no list": f'{kind} = "x"\n'.encode(),
        "a number": f"{kind} = 7\n".encode(),
        "a table": f"[{kind}]\nx = 1\n".encode(),
        "a list of numbers": f"{kind} = [1, 2]\n".encode(),
        "a list of lists": f"{kind} = [[1], []]\n".encode(),
        "empty entry": f"[[{kind}]]\n".encode(),
        "nested": b"x = " + b"[" * 50_000 + b"]" * 50_000,
        "nested tables": b"x = " + b"{a = " * 5_000 + b"1" + b"}" * 5_000,
        "twice": good + b'why = "again"\n',
        "too long": b"# " + b"x" * (5 << 20),
        "digits": b"x = " + b"9" * 10_000 + b"\n",
        "null": b"\x00" * 100,
    }


CASES = [(kind, name) for kind in LOADERS for name in table(kind)]
FIELDS = [("expect", f, v) for f in EXPECT_FIELDS for v in VALUES] + [
    ("known", f, v) for f in KNOWN_FIELDS for v in VALUES
]


def load(kind: str, folder: Path) -> str:
    """The one line that it is refused with; empty where it is read."""
    try:
        LOADERS[kind](folder)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind, name", CASES)
def test_a_file_that_is_none_is_one_line(kind: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(table(kind)[name])
    assert "x.toml" in load(kind, tmp_path)


@pytest.mark.parametrize("kind, field, value", FIELDS)
def test_a_field_of_any_type_is_read_or_one_line(kind: str, field: str, value: str, tmp_path: Path) -> None:
    lines = [line for line in GOOD[kind].splitlines() if not line.startswith(f"{field} =")]
    (tmp_path / "x.toml").write_text("\n".join([*lines, f"{field} = {value}"]) + "\n")
    refused = load(kind, tmp_path)
    texts = {'"x"', '"\\u001b[31m"', '"\\u202e"'}
    assert (
        "x.toml" in refused
        if value not in texts and (field, value) not in {("avoid", "true"), ("cell", "[]")}
        else True
    )


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink("nowhere", path)]
)
def test_what_is_no_plain_file_is_refused_at_once(kind: str, make: Any, tmp_path: Path) -> None:
    make(tmp_path / "x.toml")
    assert "x.toml" in load(kind, tmp_path)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a*)*b", "(?:x+y?)+z", "([a-z]+){3,}", "a" * 501, "(", "a{99999999999}"]
)
def test_a_regular_expression_that_may_not_end_is_refused(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(f"{GOOD['known']}detail = '{pattern}'\n")
    started = time.monotonic()
    assert "detail is" in load("known", tmp_path) and time.monotonic() - started < 5


def test_what_ships_with_the_suite_is_read() -> None:
    assert len(expectations.load().entries) > 10 and len(known.load()) > 10


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(LOADERS)), at=st.integers(0, 120), put=st.binary(max_size=30), cut=st.integers(0, 30)
)
def test_any_damage(kind: str, at: int, put: bytes, cut: int, tmp_path: Path) -> None:
    raw = GOOD[kind].encode()
    (tmp_path / "x.toml").write_bytes(raw[:at] + put + raw[at + cut :])
    load(kind, tmp_path)


def test_the_command_line_says_it_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.toml").write_text('[[expect]]\ncell = "a\\u001b[31m"\n')
    with pytest.raises(SystemExit) as ended:
        cli.main(
            [
                "run",
                "-b",
                "eager",
                "-m",
                "norm.rmsnorm",
                "--expectations",
                str(tmp_path),
                "--record",
                str(tmp_path / "r.jsonl"),
            ]
        )
    err = capsys.readouterr().err
    assert (
        ended.value.code == 2 and "\x1b" not in err and len(err.strip().splitlines()) == 1 and "x.toml entry 1" in err
    )
