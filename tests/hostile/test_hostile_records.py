"""Every hostile record through every command that reads records: one line and exit 2, or it is shown as text."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from corpus import CELL, GOOD, SECRET, SPECIAL, files, header, lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance import cli, record, record_writer
from conformance.errors import UsageError

FILES = files()
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")


def conformance(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """Run a command in this process; whatever the file, the outcome is one that a person can read."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in args])
    out, err = capsys.readouterr()
    code = ended.value.code or 0
    assert code in (0, 1, 2), code
    assert not CONTROL.search(out + err), CONTROL.search(out + err)
    assert "Traceback" not in out + err and SECRET not in out + err
    if code == 2:
        assert len(err.strip().splitlines()) == 1 and err.startswith("conformance: ") and len(err) < 3_000, err
    return int(code), out, err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the hostile record goes, and a secret in the folders around it."""
    inside = tmp_path / "a" / "b"
    (inside / "run.texts").mkdir(parents=True)
    for place in (tmp_path, tmp_path / "a", inside):
        (place / "secret.txt").write_text(SECRET)
    (inside / "run.texts" / "secret.txt").write_text(SECRET)
    (inside / "good.jsonl").write_bytes(lines(header(), GOOD))
    return inside


def test_there_are_at_least_150() -> None:
    assert len(FILES) + len(SPECIAL) >= 150, len(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_command_reads_it_or_says_why_not(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, good = folder / "run.jsonl", folder / "good.jsonl"
    path.write_bytes(FILES[name])
    read = conformance(capsys, "matrix", path)[0]
    assert conformance(capsys, "diff", path, good, "--all")[0] == read
    assert conformance(capsys, "diff", good, path, "--all")[0] == read
    assert conformance(capsys, "history", path, "--all")[0] == read
    assert conformance(capsys, "show", CELL, "--record", path)[0] == (2 if read else 0)
    assert conformance(capsys, "matrix", path, good)[0] == 0  # beside a good record, it is one line among the problems
    if read == 0:
        for suffix in ("html", "md", "json", "xml"):
            conformance(capsys, "matrix", path, "-o", folder / f"out.{suffix}", "--annotations")
            assert SECRET not in (folder / f"out.{suffix}").read_text()
        conformance(capsys, "diff", good, path, "-o", folder / "diff.html")
        conformance(capsys, "history", good, path, "-o", folder / "history.md", "--any-revision")


@pytest.mark.parametrize("name", FILES)
def test_it_is_not_resumed(name: str, folder: Path) -> None:
    """Before anything is compiled: another suite wrote it, or it is no record."""
    path = folder / "run.jsonl"
    path.write_bytes(FILES[name])
    before = path.read_bytes()
    with pytest.raises(UsageError) as error:
        record_writer.Writer(path, header(suite="mine"), resume=True) if before.strip() else record.read(path)
    assert "\n" not in str(error.value)[:200]
    kept = path.read_bytes()
    assert before.startswith(kept)  # at most a half-written last line is gone
    record_writer.Writer(folder / "again.jsonl", header()).close()  # and no lock is left behind


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_plain_file_is_refused_at_once(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "run.jsonl"
    SPECIAL[kind](path)
    for args in (
        ["matrix", path],
        ["diff", path, folder / "good.jsonl"],
        ["diff", folder / "good.jsonl", path],
        ["show", CELL, "--record", path],
    ):
        code, _, err = conformance(capsys, *args)
        assert code == 2 and "run.jsonl" in err
    if kind != "folder":  # a folder of records is what `matrix` and `history` also take
        assert conformance(capsys, "history", path)[0] == 2
    if kind not in ("missing", "dangling link"):
        with pytest.raises(UsageError):
            record_writer.Writer(path, header())


@pytest.mark.parametrize(
    "name", ["\x1b[31mred.jsonl", "new\nline.jsonl", "\u202egnp.jsonl", "a" * 200 + ".jsonl", "bad\udcff.jsonl"]
)
def test_a_name_of_a_file_is_text_too(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance(capsys, "matrix", folder / name)[0] == 2
    (folder / name).write_bytes(lines(header(), GOOD))
    assert conformance(capsys, "matrix", folder / name)[0] == 0
    assert conformance(capsys, "diff", folder / name, folder / "good.jsonl")[0] == 0
    assert conformance(capsys, "show", CELL, "--record", folder / name)[0] == 0


# ------------------------------------------------------------------------------ texts beside a record


def test_a_text_is_what_its_digest_says_and_in_its_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link, a FIFO, a folder or another text under the name of a digest is none."""
    texts = folder / "run.texts"
    keys = {name: f"{k}" * 16 for k, name in enumerate(("link", "fifo", "folder", "other"))}
    (texts / f"{keys['link']}.txt").symlink_to(folder / "secret.txt")
    os.mkfifo(texts / f"{keys['fifo']}.txt")
    (texts / f"{keys['folder']}.txt").mkdir()
    (texts / f"{keys['other']}.txt").write_text(SECRET)
    (folder / "run.jsonl").write_bytes(lines(header(), {**GOOD, "texts": keys}))
    _, out, _ = conformance(capsys, "show", CELL, "--record", folder / "run.jsonl")
    assert out.count("(the text is not beside the record)") == 4
    conformance(capsys, "matrix", folder / "run.jsonl", "-o", folder / "m.html")
    assert SECRET not in (folder / "m.html").read_text()


def test_escape_codes_in_a_text_do_not_reach_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = record_writer.keep_text(folder / "run.texts", "a\x1b[2Jb\x07\u202ec\n")
    (folder / "run.jsonl").write_bytes(lines(header(), {**GOOD, "texts": {"code \x1b[31m": key}}))
    code, out, _ = conformance(capsys, "show", CELL, "--record", folder / "run.jsonl")
    assert code == 0 and "ab\ufffd\ufffdc" in out


# ------------------------------------------------------------------------------------------ by hypothesis

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({*record.CellLine.__annotations__} - {"cell"})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    heads=st.dictionaries(st.sampled_from(["suite", "env", "argv", "started", "expectations", "producers"]), VALUES),
    found=st.lists(st.dictionaries(st.sampled_from(FIELDS), VALUES), max_size=4),
)
def test_any_json(
    folder: Path, capsys: pytest.CaptureFixture[str], heads: dict[str, object], found: list[dict[str, object]]
) -> None:
    path = folder / "run.jsonl"
    path.write_bytes(
        lines(
            {**header(), **heads},
            *({"cell": f"fusion/inductor/cpu/a.n{k}", "verdict": "pass", **one} for k, one in enumerate(found)),
            GOOD,
        )
    )
    if conformance(capsys, "matrix", path, "-o", folder / "m.html")[0] == 0:
        conformance(capsys, "show", CELL, "--record", path)
    conformance(capsys, "diff", folder / "good.jsonl", path)


RECORD = lines(header(), *(dict(GOOD, cell=f"fusion/inductor/cpu/n.m{k}") for k in range(5)), GOOD)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(RECORD)), length=st.integers(0, 200), put=st.binary(max_size=40))
def test_any_damage(folder: Path, capsys: pytest.CaptureFixture[str], at: int, length: int, put: bytes) -> None:
    """A record with a piece cut out and other bytes in its place."""
    path = folder / "run.jsonl"
    path.write_bytes(RECORD[:at] + put + RECORD[at + length :])
    conformance(capsys, "matrix", path)
    conformance(capsys, "diff", path, folder / "good.jsonl")
