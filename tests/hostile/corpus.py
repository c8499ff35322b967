"""Records that are broken, or were made to do harm. Each is a name and a function that puts the file there.

Nothing in them may run, be read from outside, reach a terminal as a control character, or end in a traceback.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from conformance import record, trace
from tests.support.samples import cell, header

SECRET = "TOPSECRET-of-another-file"
RUN = "window.hacked = true"
CELL = "fusion/inductor/cpu/norm.a"
GOOD = cell(CELL, "fail", reason="2 kernels", findings=[{"kind": "unfused", "check": "FUS001", "detail": "apart"}])

TEXTS = {
    "script": f"</script><script>{RUN}</script>",
    "comment": f"<!--<script>{RUN}",
    "image": f"<img src=x onerror='{RUN}'>",
    "svg": f'"><svg onload={RUN}>',
    "attribute": f"' onmouseover='{RUN}",
    "template": f"{{{{ ''.__class__ }}}} ${{{RUN}}}",
    "scheme": f"javascript:{RUN}",
    "cdata": f"]]>{RUN}<![CDATA[",
    "colour": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b5m",
    "clear": "\x1b[2J\x1b[H\x1bc",
    "link": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "bidi": "\u202egnp.exe \u2066x\u2069 \u200f \u061c",
    "separators": "a\u2028b\u2029c\ufeff\u0085d",
    "controls": "a\x00b\x08c\x7f\x0b\x0c\r",
    "surrogates": "a\ud800b\udfff",
    "tags": "a\U000e0041\U000e007f\u00ad\u200b",
    "path": "../../../etc/passwd",
    "workflow": "%0A::error::injected\n::error::injected",
    "markdown": "| a | `b` **c** @everyone <b>d</b> [x](javascript:alert(1))",
    "rich": "[bold red]x[/] [link=http://evil]y[/link] :smile: [/]",
    "prototype": "__proto__",
    "constructor": "constructor",
    "formula": '=HYPERLINK("http://evil")',
    "long": "x" * 5_000,
}
WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "number": 7,
    "float": -1.5,
    "text": "x",
    "list": ["x", 1, None],
    "table": {"x": {"y": 1}},
    "huge": 10**400,
    "nan": float("nan"),
    "infinity": float("inf"),
    "deep": json.loads("[" * 60 + "]" * 60),
}
FIELDS = tuple(record.CellLine.__annotations__)
HEADER_FIELDS = ("schema", "suite", "commit", "env", "producers", "expectations", "argv", "started")
ENV_FIELDS = ("torch", "python", "machine", "cpu", "gpu", "threads", "backends")


def lines(*values: Any) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode("utf-8", "surrogatepass")


def raw_files() -> Iterator[tuple[str, bytes]]:
    """Files that are no record at all, or whose header is none."""
    head = lines(header())
    yield "empty", b""
    yield "blank", b" \n\n\t\n"
    yield "words", b"hello\n"
    yield "array", b"[1, 2]\n"
    yield "null", b"null\n"
    yield "object", b"{}\n"
    yield "no schema", b'{"a": 1}\n'
    yield "pickle", pickle.dumps({"schema": "conformance/1"})
    yield "gzip", b"\x1f\x8b\x08\x00" + b"\x00" * 60
    yield "binary", bytes(range(256)) * 20
    yield "utf-16", head.decode().encode("utf-16")
    yield "only a cell", lines(GOOD)
    yield "unclosed", b"{" * 100_000
    yield "nested arrays", b"[" * 100_000 + b"]" * 100_000
    yield "nested objects", b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    yield "long header", b'{"schema": "conformance/1", "x": "' + b"y" * (record.MAX_LINE + 10) + b'"}\n'
    for schema in (
        "conformance/\u00b2",  # a digit for Python's isdigit, and no number
        "conformance/\u0663",
        "conformance/-1",
        "conformance/1.5",
        "conformance/",
        "conformance/9",
        "conformance/" + "9" * 5_000,
        "conformance/1\n2",
        "sarif/1",
        "\x1b[31mconformance/1",
        "\u202econformance/1",
        "x" * 10_000,
    ):
        yield f"schema {schema[:24]!r}", lines({**header(), "schema": schema}, GOOD)


def header_files() -> Iterator[tuple[str, bytes]]:
    for name in HEADER_FIELDS:
        for kind, value in WRONG.items():
            yield f"header {name} {kind}", lines({**header(), name: value}, GOOD)
    for name in ENV_FIELDS:
        for kind in ("number", "text", "list", "table"):
            yield f"env {name} {kind}", lines({**header(), "env": {**header()["env"], name: WRONG[kind]}}, GOOD)
    for name, text in TEXTS.items():
        env = {
            "torch": text,
            "machine": text,
            "cpu": text,
            "gpu": text,
            "backends": {text: {text: text}, "inductor": {"torch": text}},
        }
        more = {
            "suite": text,
            "commit": text,
            "argv": [text],
            "started": text,
            "expectations": text,
            "producers": {text: text},
        }
        yield f"header text {name}", lines({**header(), "env": env, **more}, GOOD)


def line_files() -> Iterator[tuple[str, bytes]]:
    """A good header, a bad line, a good line."""
    for name in FIELDS:
        for kind, value in WRONG.items():
            yield f"{name} {kind}", lines(header(), {**cell("capture/inductor/cpu/norm.a"), name: value}, GOOD)
    for name, text in TEXTS.items():
        yield (
            f"cell text {name}",
            lines(header(), hostile_cell(text), hostile_cell(text, f"{text}/inductor/{text}/n.m"), GOOD),
        )
    for name, bad in {
        "half": b'{"cell": "capture/inductor/cpu/a.b", "verd',
        "words": b"hello",
        "array": b"[]",
        "object": b"{}",
        "not UTF-8": b'{"cell": "capture/inductor/cpu/a.\xff\xfe", "verdict": "pass"}',
        "NaN": b'{"cell": "capture/inductor/cpu/a.b", "verdict": "pass", "observation": {"x": NaN, "y": -Infinity}}',
        "twice": b'{"cell": "capture/a/cpu/a.b", "verdict": "pass", "verdict": "fail", "cell": "fusion/a/cpu/a.b"}',
        "digits": b'{"cell": "capture/inductor/cpu/a.b", "verdict": "pass", "seconds": ' + b"9" * 6_000 + b"}",
        "exponent": b'{"cell": "capture/inductor/cpu/a.b", "verdict": "pass", "seconds": 1e999}',
        "surrogate": b'{"cell": "capture/inductor/cpu/a.b", "verdict": "pass", "reason": "\\ud800"}',
        "long": b'{"cell": "capture/inductor/cpu/a.b", "verdict": "pass", "reason": "'
        + b"y" * (record.MAX_LINE + 10)
        + b'"}',
        "nested": b'{"cell": "capture/inductor/cpu/a.b", "verdict": "pass", "observation": {"x": '
        + b"[" * 900
        + b"]" * 900
        + b"}}",
        "nested past the stack": b'{"cell": "a/b/c/d", "observation": ' + b"[" * 90_000 + b"]" * 90_000 + b"}",
        "null bytes": b"\x00" * 500,
    }.items():
        yield f"line {name}", lines(header()) + bad + b"\n" + lines(GOOD)
    for name in (
        "",
        "/",
        "////",
        "a/b/c",
        "fusion/inductor/cpu/",
        "fusion/inductor/cpu/a/b/c",
        "x" * 100_000,
        "*/?/[/]",
    ):
        yield f"name {name[:20]!r}", lines(header(), {**cell("x"), "cell": name}, GOOD)
    yield "a cell a thousand times", lines(header(), *[GOOD] * 1_000)
    yield "five thousand broken lines", lines(header()) + b"x\n" * 5_000 + lines(GOOD)
    yield "carriage returns", lines(header(), GOOD).replace(b"\n", b"\r\n")
    yield "byte order mark", b"\xef\xbb\xbf" + lines(header(), GOOD)
    yield "no last newline", lines(header(), GOOD).rstrip()


def text_files() -> Iterator[tuple[str, bytes]]:
    """Digests that would be paths."""
    for key in (
        "../secret",
        "../../secret",
        "/etc/passwd",
        "..%2fsecret",
        "secret",
        "",
        ".",
        "deadbeef\n",
        "deadbeef/../../secret",
        "DEADBEEF",
        "a" * 65,
        "deadbee\u0661",
    ):
        bad = {**cell("capture/inductor/cpu/norm.a"), "texts": {"code": key, "graph": trace.digest("there")}}
        yield f"digest {key[:24]!r}", lines(header(), bad, GOOD)


def hostile_cell(text: str, name: str = "") -> dict[str, Any]:
    return cell(
        name or f"fusion/{text[:40].replace('/', ' ')}/cpu/{text}",
        "fail",
        reason=text,
        findings=[{"kind": text, "check": text, "detail": text}],
        observation={text: {text: [text, text]}, "kernels": text, "matches": {text: 1}, "guards": {text: text}},
        texts={text: trace.digest(text), "graph before": trace.digest(text), "graph after": trace.digest(text)},
        url=text,
        micrograph=text,
        upstream=[text, f"{text}#1"],
        title=text,
        cause=text,
    )


# ------------------------------------------------------------------------------------ what is no plain file


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "FIFO": _fifo,
    "folder": lambda path: path.mkdir(),
    "socket": _socket,
    "symbolic link to itself": _loop,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to a FIFO": lambda path: (
        os.mkfifo(path.with_suffix(".fifo")),
        path.symlink_to(path.with_suffix(".fifo").name),
    )[0],
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "/dev/null": lambda path: path.symlink_to("/dev/null"),
    "/dev/tty": lambda path: path.symlink_to("/dev/tty"),
    "missing": lambda path: None,
}


def files() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in (raw_files, header_files, line_files, text_files):
        found |= dict(part())
    return found
