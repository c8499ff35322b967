"""What writes records, or takes findings from them, among hostile files: `run --resume`, `expect`, baselines, the
Writer."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from corpus import CELL, FIELDS, GOOD, TEXTS, WRONG, files, header, hostile_cell, lines

from conformance import cli, record, record_writer
from conformance.baseline import Baseline
from conformance.cell import Cell
from conformance.errors import UsageError, first_line

FILES = files()
SOME = [name for name in FILES if not name.startswith(("header ", "env ", *(f"{field} " for field in FIELDS)))]


def conformance(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in args])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "Traceback" not in err
    return int(ended.value.code or 0), err


# ------------------------------------------------------------------------------------- the commands themselves


@pytest.mark.parametrize("name", [name for name in SOME if FILES[name].strip()][::4])
def test_run_refuses_to_resume_before_it_compiles(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(FILES[name])
    code, err = conformance(capsys, "run", "-b", "eager", "-m", "norm.rmsnorm", "--resume", "--record", path)
    assert code == 2 and len(err.strip().splitlines()) == 1, err
    assert FILES[name].startswith(path.read_bytes())


@pytest.mark.parametrize("name", SOME[::3])
def test_expect_takes_a_finding_from_it_or_says_why_not(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "run.jsonl", tmp_path / "out" / "x.toml"
    path.write_bytes(FILES[name])
    code, err = conformance(
        capsys, "expect", CELL, "--record", path, "--url", "https://x", "--when", "torch>=2.11", "-o", out
    )
    assert code in (0, 2) and len(err.strip().splitlines()) <= 1


@pytest.mark.parametrize("text", TEXTS.values())
def test_nothing_of_a_finding_becomes_another_entry(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {
        **GOOD,
        "reason": f'{text}"\n[[expect]]\ncell = "*/*/*/*"',
        "findings": [{"kind": "unfused", "check": text, "detail": text}],
    }
    (tmp_path / "run.jsonl").write_bytes(lines(header(), line))
    out = tmp_path / "out" / "x.toml"
    args = ["--url", "https://x", "--when", "torch>=2.11", "-o", out]
    assert conformance(capsys, "expect", CELL, "--record", tmp_path / "run.jsonl", *args)[0] == 0
    assert out.read_text().count("\n[[expect]]") == 0 and out.read_text().startswith("[[expect]]")


@pytest.mark.parametrize("name", FILES)
def test_a_baseline_is_read_or_left_out(name: str, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(FILES[name])
    baseline = Baseline(
        {"torch": "2.14.1", "machine": "x86_64", "backends": {"inductor": {"torch": "2.14.1"}}}, tmp_path
    )
    for stage in ("capture", "fusion"):
        list(baseline.findings(Cell.parse(f"{stage}/inductor/cpu/norm.a"), "", {"kernels": 3, "graphs": 1}))


# ------------------------------------------------------------------------------------------------ the Writer


def test_the_second_run_on_one_record_is_refused(tmp_path: Path) -> None:
    first = record_writer.Writer(tmp_path / "r.jsonl", header())
    first.add(GOOD)
    for resume in (False, True):
        with pytest.raises(UsageError, match="is being written by another run"):
            record_writer.Writer(tmp_path / "r.jsonl", header(), resume=resume)
    first.add({**GOOD, "cell": "cache/inductor/cpu/a.b"})
    first.close()
    again = record_writer.Writer(tmp_path / "r.jsonl", header(), resume=True)
    assert len(again.done) == 2
    again.close()


def test_two_processes_do_not_write_one_record(tmp_path: Path) -> None:
    holder = record_writer.Writer(tmp_path / "r.jsonl", header())
    code = f"from conformance.record_writer import Writer; Writer({str(tmp_path / 'r.jsonl')!r}, {header()!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "is being written by another run" in done.stderr
    holder.close()


FULL = """
import resource, sys
from conformance import cli, record_writer
from conformance.errors import UsageError
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
writer = record_writer.Writer(sys.argv[1], {header!r})
try:
    for k in range(1000):
        line = {{"cell": f"capture/inductor/cpu/a.n{{k}}", "verdict": "pass", "reason": "x" * 300}}
        writer.add(line, {{"code": f"text {{k}}"}})
except UsageError as error:
    print(len(writer.done), error)
"""


def test_a_full_disk_leaves_a_valid_record(tmp_path: Path) -> None:
    """The limit on a file's size stands for the disk's: the same call fails, in the middle of a line."""
    path = tmp_path / "r.jsonl"
    code = textwrap.dedent(FULL).format(header=header())
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60)
    assert (
        "cannot write the record" in done.stdout and "File too large; what was recorded before is kept" in done.stdout
    )
    assert len(done.stdout.strip().splitlines()) == 1 and not done.stderr
    run = record.read(path)
    assert len(run.cells) == int(done.stdout.split()[0]) > 10 and run.problems == []
    again = record_writer.Writer(path, header(), resume=True)
    assert not again.repaired and len(again.done) == len(run.cells)
    again.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A real one, of 64 KiB, where this user may mount it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("cannot mount a small disk here (needs root)")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    writer = record_writer.Writer(small_disk / "r.jsonl", header())

    def fill() -> None:
        for k in range(1_000):
            writer.add({**GOOD, "cell": f"capture/inductor/cpu/a.n{k}"}, {"code": "y" * 500 + str(k)})

    with pytest.raises(UsageError, match=os.strerror(errno.ENOSPC)):
        fill()
    writer.close()
    run = record.read(small_disk / "r.jsonl")
    assert run.problems == [] and len(run.cells) == len(writer.done) > 3
    assert not [file for file in (small_disk / "r.texts").iterdir() if file.suffix != ".txt"]  # no half-written text


def test_texts_are_private_and_by_digest(tmp_path: Path) -> None:
    writer = record_writer.Writer(tmp_path / "r.jsonl", header())
    writer.add(GOOD, {"code": "import os  # /home/me/project/x.py", "empty": ""})
    writer.close()
    (line,) = record.read(tmp_path / "r.jsonl").cells.values()
    folder = tmp_path / "r.texts"
    assert (
        list(line["texts"]) == ["code"]
        and record.Run(tmp_path / "r.jsonl").text(line["texts"]["code"]) == "import os  # x.py"
    )
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("text", [*TEXTS.values(), "caf\udce9 \ud83d"])
def test_what_cannot_be_encoded_is_written_and_read_again(text: str, tmp_path: Path) -> None:
    writer = record_writer.Writer(tmp_path / "r.jsonl", header())
    writer.add(hostile_cell(text, CELL), {text: text})
    writer.close()
    run = record.read(tmp_path / "r.jsonl")
    assert run.problems == [] and list(run.cells) == [CELL]
    assert run.cells[CELL]["reason"] == text.encode("utf-8", "backslashreplace").decode()


@pytest.mark.parametrize("value", WRONG.values())
def test_any_fact_is_written_and_read_again(value: Any, tmp_path: Path) -> None:
    writer = record_writer.Writer(tmp_path / "r.jsonl", header())
    writer.add({**GOOD, "observation": {"fact": value, 3: {1, 2}, "object": object()}})
    writer.close()
    assert [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error, line",
    [
        (ValueError("caf\udce9 is bad"), "ValueError: caf\\udce9 is bad"),
        (ValueError("\x1b[31mred\x00"), "ValueError: \\x1b[31mred\\x00"),
        (Unspeakable("a", 3), "Unspeakable: ('a', 3) (its text cannot be shown: RuntimeError)"),
        (
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: bad",
        ),
    ],
)
def test_an_exception_keeps_its_text(error: Exception, line: str) -> None:
    assert first_line(error) == line
    first_line(error).encode()
