"""Nothing recorded is lost, and nothing runs twice."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from conformance import record, record_writer
from conformance.errors import UsageError

HEADER = {"schema": "conformance/1", "suite": "abc", "env": {"torch": "2.14.1"}}


def line(name: str, verdict: str = "pass") -> dict[str, object]:
    return {"cell": f"runtime/eager/cpu/{name}", "verdict": verdict, "reason": "", "findings": [], "observation": {}}


def test_a_cell_is_on_disk_as_soon_as_it_ended(tmp_path: Path) -> None:
    writer = record_writer.Writer(tmp_path / "r.jsonl", HEADER)
    writer.add(line("a.b"))
    assert list(record.read(tmp_path / "r.jsonl").cells) == ["runtime/eager/cpu/a.b"]


def test_a_half_written_line_is_repaired_and_run_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = record_writer.Writer(path, HEADER)
    writer.add(line("a.b"))
    writer.close()
    with path.open("a") as file:
        file.write('{"cell": "runtime/eager/cpu/a.c", "verd')
    assert len(record.read(path).problems) == 1
    again = record_writer.Writer(path, HEADER, resume=True)
    assert again.repaired and list(again.done) == ["runtime/eager/cpu/a.b"]
    again.add(line("a.b", "fail"))
    again.add(line("a.c"))
    again.close()
    run = record.read(path)
    assert not run.problems and {k: v["verdict"] for k, v in run.cells.items()} == {
        "runtime/eager/cpu/a.b": "pass",
        "runtime/eager/cpu/a.c": "pass",
    }


def test_a_record_of_another_environment_is_not_resumed(tmp_path: Path) -> None:
    record_writer.Writer(tmp_path / "r.jsonl", HEADER).close()
    with pytest.raises(UsageError, match="another env"):
        record_writer.Writer(tmp_path / "r.jsonl", {**HEADER, "env": {"torch": "2.15.0"}}, resume=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("hello\n", "not a conformance record"),
        ("[1, 2]\n", "not a conformance record"),
        (json.dumps({"schema": "conformance/9"}) + "\n", "newer suite"),
        (json.dumps({"schema": "sarif/2"}) + "\n", "schema 'sarif/2'"),
    ],
)
def test_what_is_not_a_record_is_said_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(UsageError, match=says) as error:
        record.read(tmp_path / "r.jsonl")
    assert "\n" not in str(error.value)


def test_an_unknown_verdict_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(json.dumps(x) for x in (HEADER, line("a.b", "splendid"), line("a.c"))) + "\n")
    run = record.read(path)
    assert len(run.cells) == 2 and "splendid" in run.problems[0]


def test_texts_lie_beside_the_record_by_digest(tmp_path: Path) -> None:
    key = record_writer.keep_text(tmp_path / "r.texts", "graph \ud800")
    assert record_writer.keep_text(tmp_path / "r.texts", "graph \ud800") == key
    assert record.Run(tmp_path / "r.jsonl").text(key) is not None


def test_a_record_names_files_and_not_where_somebody_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    said = "Unsupported: call at /home/me/checkout/fixtures/micrographs/norm.py:12, see https://host.example/docs/a.py"
    kept = "Unsupported: call at norm.py:12, see https://host.example/docs/a.py"
    writer = record_writer.Writer(path, HEADER)
    findings = [{"kind": "crash", "detail": said}]
    writer.add({**line("a.b"), "reason": said, "findings": findings, "observation": {"break_reasons": [said]}})
    writer.close()
    cell = next(iter(record.read(path).cells.values()))
    assert [cell["reason"], cell["findings"][0]["detail"], *cell["observation"]["break_reasons"]] == [kept] * 3


def compressed(path: Path, raw: bytes) -> Path:
    path.write_bytes(lzma.compress(raw))
    return path


def test_a_compressed_record_is_read_with_its_texts_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = record_writer.Writer(path, HEADER)
    writer.add(line("a.b"), {"graph": "x = y"})
    writer.close()
    plain = record.read(path)
    kept = compressed(tmp_path / "r.jsonl.xz", path.read_bytes())
    path.unlink()
    run = record.read(kept)
    (key,) = run.cells["runtime/eager/cpu/a.b"]["texts"].values()
    assert (run.header, run.cells, run.text(key)) == (plain.header, plain.cells, "x = y")
    with pytest.raises(UsageError, match="is a compressed record"):
        record_writer.Writer(kept, HEADER, resume=True)


@pytest.mark.parametrize(
    ("name", "says"), [("cut", "not whole"), ("other", "no file of xz"), ("bomb", "at most"), ("endless", "at most")]
)
def test_a_compressed_record_that_lies_is_refused_in_one_line(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "MAX_FILE", 1 << 20)
    monkeypatch.setattr(record, "MAX_LINE", 1 << 10)
    head = json.dumps(HEADER).encode() + b"\n"
    raw = {
        "cut": lzma.compress(head + json.dumps(line("a.b")).encode())[:-20],
        "other": b"hello",
        "bomb": lzma.compress(head + b"\n" * (2 << 20)),
        "endless": lzma.compress(head + b"x" * (2 << 20)),
    }
    path = tmp_path / "r.jsonl.xz"
    path.write_bytes(raw[name])
    with pytest.raises(UsageError, match=says):
        record.read(path)
