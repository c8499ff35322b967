"""Long texts in one file beside the record: the same texts, found by digest, and nothing else."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance import packed_texts, trace
from conformance.packed_texts import packed_file, read_packed, write_packed
from conformance.report.commands import matrix, pack
from conformance.report.load import load
from tests.support.samples import Write, compile_of

TEXTS = {"graph": "def forward(self, x):\n    return x\n", "code": "kernel \u2028 \ud800"}


@pytest.fixture
def record(write: Write) -> Path:
    lines = compile_of("a.b", "inductor", "cpu")
    lines[0]["texts"] = {name: trace.digest(text) for name, text in TEXTS.items()}
    return write("run.jsonl", lines, {"graph": TEXTS["graph"]})


def test_a_packed_record_shows_its_texts_without_the_folder(record: Path, tmp_path: Path) -> None:
    out = CliRunner().invoke(pack, [str(record)])
    assert out.exit_code == 0 and "1 text, 1 text missing" in out.output
    shutil.rmtree(record.with_suffix(".texts"))
    (run,) = load([record])
    assert run.text(trace.digest(TEXTS["graph"])) == TEXTS["graph"]
    assert run.text(trace.digest(TEXTS["code"])) is None
    made = CliRunner().invoke(matrix, [str(record), "-o", str(tmp_path / "page.html")])
    assert made.exit_code == 0
    assert "1 text is not beside the records" in (tmp_path / "page.html").read_text()


def test_a_record_without_texts_is_said(write: Write) -> None:
    path = write("bare.jsonl", compile_of("a.b", "inductor", "cpu"))
    out = CliRunner().invoke(pack, [str(path)])
    assert out.exit_code and "no texts beside" in str(out.exception)


def test_the_same_texts_are_the_same_bytes(record: Path) -> None:
    first = write_packed(record, TEXTS.values()).read_bytes()
    assert write_packed(record, [*reversed(TEXTS.values()), TEXTS["code"]]).read_bytes() == first
    assert read_packed(record) == {trace.digest(text): text for text in TEXTS.values()}


@pytest.mark.parametrize("raw", [b"", b"not xz", lzma.compress(b'"half'), lzma.compress(b'{"a": 1}\n[1]\n3')])
def test_a_broken_file_has_no_texts(record: Path, raw: bytes) -> None:
    packed_file(record).write_bytes(raw)
    assert read_packed(record) == {}


def test_a_bomb_a_link_and_a_folder_are_harmless(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_texts, "MAX_UNPACKED", 1 << 20)
    kept = json.dumps("kept").encode()
    packed_file(record).write_bytes(lzma.compress(kept + b"\n" + json.dumps("x" * (8 << 20)).encode(), preset=0))
    assert set(read_packed(record).values()) <= {"kept"}
    target = record.with_name("other.xz")
    packed_file(record).rename(target)
    packed_file(record).symlink_to(target)
    assert read_packed(record) == {}
    packed_file(record).unlink()
    packed_file(record).mkdir()
    assert read_packed(record) == {}
