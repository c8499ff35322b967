"""Pinned examples, findings, fuzz databases and plans that are broken or made to do harm: one line, and nothing in them
runs, is imported or becomes a path."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from corpus import TEXTS, WRONG
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_hostile_records import conformance

from conformance.errors import UsageError
from conformance.fuzz import confirm, database, graph_gen, pinned
from conformance.fuzz.example import OLD, Call, Example, Given, read
from conformance.fuzz.finding import Findings, finding_of
from conformance.fuzz.graph import micrograph_of
from conformance.fuzz.home import home
from conformance.oracle import Difference
from conformance.verdict import Kind

ATTACK = "__import__('pathlib').Path({marker!r}).touch()"
PATHS = (
    "../evil.Evil",
    "/tmp/evil.Evil",
    "..evil.Evil",
    "evil/evil.Evil",
    "norm\x00.A",
    "pinned.Anything",
    "os.path",
    "",
)


def of_library() -> Example:
    return Example("pointwise.chain", (Call({"b": 2, "n": 3}, (Given(), Given())),), ("b",), mutates=())


HOME = tempfile.mkdtemp(prefix="conformance-hostile-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)


@cache
def of_graph() -> Example:
    graph = graph_gen.graph(3)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CONFORMANCE_HOME", HOME)
        made = micrograph_of(graph)
    return Example(made.name(), (Call(dict(made.dims), tuple(Given() for _ in made.inputs)),), graph=graph, mutates=())


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))


def whole_files() -> Iterator[tuple[str, bytes]]:
    """Files that are no example."""
    good = json.dumps(of_library().to_json()).encode()
    yield from {
        "empty": b"",
        "words": b"hello\n",
        "null": b"null",
        "list": b"[]",
        "number": b"7",
        "object": b"{}",
        "half": good[:-20],
        "twice": good + good,
        "binary": bytes(range(256)),
        "utf-16": good.decode().encode("utf-16"),
        "not UTF-8": good.replace(b"pointwise", b"\xff\xfe"),
        "nested": b"[" * 100_000 + b"]" * 100_000,
        "nested objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        "large": b'{"a": "' + b"x" * (5 << 20) + b'"}',
        "digits": b'{"schema": ' + b"9" * 10_000 + b"}",
        "newer": good.replace(b"example/2", b"example/3"),
        "pickle": b"\x80\x04\x95\x1a\x00\x00\x00",
        "python": b"import os\nos.system('true')\n",
    }.items()


def changed(data: dict[str, Any], place: tuple[Any, ...], value: Any) -> bytes:
    """The example with one value replaced."""
    data = json.loads(json.dumps(data))
    inner: Any = data
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return json.dumps(data).encode("utf-8", "surrogatepass")


LIBRARY_PLACES = [
    ("schema",),
    ("micrograph",),
    ("calls",),
    ("dynamic",),
    ("graph",),
    ("mutates",),
    ("about",),
    ("unbacked",),
]
LIBRARY_PLACES += [("limit",), ("calls", 0)]
LIBRARY_PLACES += [("calls", 0, key) for key in ("dims", "given", "dtype", "seed", "mode", "stance", "scalars")]
LIBRARY_PLACES += [("calls", 0, "dims", "b"), ("calls", 0, "given", 0)]
LIBRARY_PLACES += [("calls", 0, "given", 0, key) for key in ("layout", "values", "shares", "same")]
GRAPH_PLACES = [("graph", key) for key in ("inputs", "lines", "outputs")] + [("graph", "outputs", 0)]
GRAPH_PLACES += [("graph", "inputs", 0, key) for key in ("name", "shape", "dtype", "fill")]
GRAPH_PLACES += [("graph", "lines", 0, key) for key in ("name", "op", "args", "dim", "shape", "dtype")]


def data_files(marker: str) -> Iterator[tuple[str, bytes]]:
    """Examples with one value of another type, or with text that was made to do harm."""
    attack = ATTACK.format(marker=marker)
    for data, places in ((of_library().to_json(), LIBRARY_PLACES), (of_graph().to_json(), GRAPH_PLACES)):
        for place in places:
            where = ".".join(map(str, place))
            for kind, value in WRONG.items():
                yield f"{where} {kind}", changed(data, place, value)
            for kind, text in (("code", attack), ("path", "../../etc/passwd"), ("escape", TEXTS["colour"])):
                yield f"{where} {kind}", changed(data, place, text)
                yield f"{where} list of {kind}", changed(data, place, [text])
    for name in PATHS:
        yield f"micrograph {name!r}", changed(of_library().to_json(), ("micrograph",), name)
    for op in (
        attack,
        "{0}; " + attack,
        "{0}.sin() if " + attack + " else {0}",
        "{0.__class__}",
        "torch.sin({0})\n" + attack,
    ):
        yield f"op {op[:30]!r}", changed(of_graph().to_json(), ("graph", "lines", 0, "op"), op)
    for dims in ({"b": 10**12}, {"b": -1}, {"zz": 3}, {"b": 1 << 20, "n": 1 << 20}):
        yield f"dims {dims}", changed(of_library().to_json(), ("calls", 0, "dims"), dims)
    for shares in (0, 5, -1):
        yield f"shares {shares}", changed(of_library().to_json(), ("calls", 0, "given", 0, "shares"), shares)
    source = f"import torch\n{attack}\nclass Evil(Micrograph):\n    pass\n"
    yield "old, with code", json.dumps({**of_library().to_json(), "schema": OLD, "source": source}).encode()
    yield "code beside it", json.dumps({**of_library().to_json(), "source": source}).encode()


MARKER = f"/tmp/conformance-hostile-example-{os.getpid()}"
FILES = {**dict(whole_files()), **dict(data_files(MARKER))}
HARMLESS = {  # still an example: a value of the right type, or a key that nobody reads
    "graph null",
    "mutates null",
    "limit number",
    "calls.0.seed number",
    "calls.0.dims.b number",
    "calls.0.given.0 table",
    "calls.0.given.0.shares null",
    "calls.0.given.0.same true",
    "graph.lines.0.dim null",
    "graph.lines.0.dtype text",
    "code beside it",
}


def loaded(folder: Path) -> str:
    """The line that pinned examples are refused with; empty where they are micrographs now."""
    try:
        for made in pinned.micrographs("conformance_micrographs.pinned", folder):
            assert made.example()
    except UsageError as error:
        return str(error)
    return ""


def test_what_the_fuzzer_writes_is_read_again() -> None:
    for example in (of_library(), of_graph()):
        assert Example.from_json(json.loads(json.dumps(example.to_json()))) == example
        assert example.as_micrograph().example()
    for number in range(0, 200, 5):
        graph_gen.graph(number).check()


def test_there_are_enough() -> None:
    assert len(FILES) >= 400


@pytest.mark.parametrize("name", FILES)
def test_a_pinned_example_is_data(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(FILES[name])
    line = loaded(tmp_path)
    assert not os.path.exists(MARKER), "it ran code"
    assert bool(line) is (name not in HARMLESS), line


@pytest.mark.parametrize(
    "name", ["old, with code", "micrograph '../evil.Evil'", "calls path", "nested", "graph.lines.0.op code"]
)
def test_every_command_that_lists_micrographs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    (folder / "examples").mkdir(parents=True)
    (folder / "examples" / "x.json").write_bytes(FILES[name])
    (folder / "pinned.py").write_text(
        "from pathlib import Path\nfrom conformance.fuzz.pinned import micrographs\n"
        f"found = micrographs(__name__, Path({str(folder / 'examples')!r}))\n"
        "globals().update({cls.__name__: cls for cls in found})\n"
    )
    sys.modules.pop("conformance_micrographs.pinned", None)
    for words in (
        ("list",),
        ("run", "-b", "eager", "--record", tmp_path / "r.jsonl"),
        ("show", "runtime/eager/cpu/pinned.X"),
    ):
        code, _, err = conformance(capsys, *words, "--micrographs", folder)
        assert code == 2 and "x.json" in err
    assert not os.path.exists(MARKER)


def test_an_old_example_is_refused_with_the_mend(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(FILES["old, with code"])
    assert "conformance fuzz" in loaded(tmp_path) and "conformance pin" in loaded(tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_plain_file_is_refused_at_once(make: Any, tmp_path: Path) -> None:
    make(tmp_path / "x.json")
    assert "x.json" in loaded(tmp_path)
    with pytest.raises(UsageError):
        read(tmp_path / "x.json")


@pytest.mark.parametrize("name", [name for name in FILES if "nested" in name or name.startswith(("micrograph", "old"))])
def test_confirming_reads_it_or_says_why_not(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(FILES[name])
    with pytest.raises(UsageError):
        confirm.main([str(tmp_path / "x.json"), "eager", "cpu", str(tmp_path / "answer.json")])
    assert not os.path.exists(MARKER)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 900), put=st.binary(max_size=20), cut=st.integers(0, 20))
def test_any_damage(at: int, put: bytes, cut: int, tmp_path: Path) -> None:
    raw = json.dumps(of_graph().to_json()).encode()
    (tmp_path / "x.json").write_bytes(raw[:at] + put + raw[at + cut :])
    loaded(tmp_path)


# ------------------------------------------------------------------------------------------------------- findings


def finding_line(**more: Any) -> dict[str, Any]:
    difference = Difference(Kind.WRONG_RESULT, "output 0", "differs")
    return {**finding_of(of_library(), difference, "eager", "cpu").to_json(), **more}


FINDINGS: dict[str, Any] = {
    f"{key} {kind}": finding_line(**{key: value}) for key in finding_line() for kind, value in WRONG.items()
}
FINDINGS |= {f"{key} is a path": finding_line(**{key: "../../evil"}) for key in ("id", "backend", "target")}


def test_findings_that_are_none_are_left_out_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps(line).encode("utf-8", "surrogatepass") for line in FINDINGS.values()]
    lines += [b"nonsense", b"[" * 50_000, b"\xff\xfe", json.dumps(finding_line()).encode()]
    (home() / "findings.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    known = Findings()
    assert finding_line()["id"] in known.known and len(known.problems) > 90
    assert all("evil" not in finding.id + finding.backend + finding.target for finding in known.known.values())
    code, _, err = conformance(capsys, "pin", "../../evil")
    assert code == 2 and "unknown finding" in err


def test_a_finding_is_pinned_below_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = finding_line()
    (home() / "findings.jsonl").write_text(json.dumps(line) + "\n")
    assert conformance(capsys, "pin", line["id"], "-o", tmp_path / "examples")[0] == 0
    (file,) = (tmp_path / "examples").iterdir()
    assert loaded(tmp_path / "examples") == "" and read(file).micrograph == "pointwise.chain"


def test_findings_that_are_no_plain_file(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(home() / "findings.jsonl")
    assert conformance(capsys, "pin", "0")[0] == 2


# --------------------------------------------------------------------------------------------- databases and plans


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path), lambda path: path.write_bytes(b"x" * (2 << 20))]
)
def test_a_database_with_what_is_no_example_is_refused(make: Any, tmp_path: Path) -> None:
    (tmp_path / "db" / "key").mkdir(parents=True)
    make(tmp_path / "db" / "key" / "odd")
    with pytest.raises(UsageError, match="odd, which is no example"):
        database.open_database(str(tmp_path / "db"))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.binary(max_size=200))
def test_a_damaged_entry_of_a_database_is_left_out(value: bytes, tmp_path: Path) -> None:
    said: list[str] = []
    keyed = database.Keyed(database.open_database(str(tmp_path / "db")), "eager/cpu/x/0", said.append)
    keyed.save(b"any", value)
    assert all(database.readable(entry) for entry in keyed.fetch(b"any"))


URLS = [
    "redis://:hunter2@127.0.0.1:1/0",
    "redis://me:hunter2@127.0.0.1:1",
    "rediss://:hunter2@127.0.0.1:1/0",
    "redis://127.0.0.1:1/0?password=hunter2",
    "redis://:hun@ter2hunter2@127.0.0.1:1",
    "redis://:hunter2#x@127.0.0.1:1",
    "redis://me:hunter2",
    "redis://:1/hunter2@127.0.0.1:port",
    "unix://:hunter2@/no/such/socket",
    "postgres://:hunter2@127.0.0.1/db",
]


@pytest.mark.parametrize("url", URLS)
def test_a_password_is_never_printed(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        database.open_database(url)
    said = [str(refused.value), database.without_secrets(url)]
    said += [database.complaint(url, ValueError(f"cannot connect: {text}")) for text in (url, "bad port 'hunter2'")]
    assert not any("hunter2" in text or "ter2" in text for text in said), said
    assert database.complaint(url, ConnectionError("refused")) == "ConnectionError: refused"


def test_a_password_is_not_on_the_screen_either(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = conformance(capsys, "fuzz", "--alone", "-t", "cpu", "--database", "postgres://:hunter2@host/db")
    assert code == 2 and "postgres://…@host/db" in err and "hunter2" not in out + err
