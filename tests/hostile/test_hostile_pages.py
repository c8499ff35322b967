"""Nothing in a record runs on a page, breaks out of a format, or links to anything but the web."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from corpus import TEXTS, hostile_cell
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from conformance import record, sanitize, trace
from conformance.report.annotations import annotations, command
from conformance.report.diff import compare, sides
from conformance.report.document import Document, code, escape, markdown
from conformance.report.history import trace as history_of
from conformance.report.junit import write_junit
from conformance.report.load import Loaded, load
from conformance.report.matrix import combine
from conformance.report.matrix_document import matrix_blocks
from conformance.report.moved import diff_blocks, history_blocks
from conformance.report.page import write_page
from conformance.report.terminal import findings_list, matrix_table, reasons_list
from tests.support.browser import Tab
from tests.support.samples import cell, write_record

ATTACKS = list(TEXTS.values())
VIEWS = ("moved", "upstream", "matrix", "trends", "time")


def hostile_lines(verdict: str = "fail") -> list[dict[str, Any]]:
    found = []
    for number, attack in enumerate(ATTACKS):
        found.append({**hostile_cell(attack), "verdict": verdict})
        found.append({**hostile_cell(attack, f"{attack}/inductor/{attack}/norm.n{number}"), "verdict": attack[:30]})
        found.append({**hostile_cell(attack, f"fusion/inductor/cpu/norm.n{number}"), "verdict": verdict})
    return found


def plain_lines() -> list[dict[str, Any]]:
    return [{**line, "verdict": "pass", "observation": {}, "findings": []} for line in hostile_lines()]


@pytest.fixture
def records(tmp_path: Path) -> list[Path]:
    """A hostile record, and an older one of the same cells that passed, so that everything moved."""
    texts = {str(k): attack for k, attack in enumerate(ATTACKS)}
    env = {
        "torch": "2.15.0",
        "machine": ATTACKS[2],
        "backends": {ATTACKS[0]: {ATTACKS[1]: ATTACKS[2]}, "inductor": {"torch": "2.15.0"}},
    }
    more = {"suite": "s", "argv": ATTACKS, "expectations": ATTACKS[1], "commit": ATTACKS[0]}
    new = write_record(tmp_path / "new.jsonl", hostile_lines(), texts, env=env, started=ATTACKS[1], **more)
    older = {**env, "torch": "2.11.0", "backends": {ATTACKS[0]: {ATTACKS[1]: "1"}, "inductor": {"torch": "2.11.0"}}}
    old = write_record(tmp_path / "old.jsonl", plain_lines(), env=older, started="0", **more)
    return [old, new]


def sound(page: Any) -> None:
    """No script ran, none was added, and nothing that could run is there."""
    assert page.evaluate("window.hacked") is None
    dangerous = "img, iframe, object, embed, form, [onerror], [onload], [onmouseover], [onclick], [srcdoc]"
    assert page.eval_on_selector_all(dangerous, "all => all.length") == 0
    assert page.eval_on_selector_all("script[src]", "all => all.length") == 0
    assert (
        page.eval_on_selector_all(
            "a[href]", "all => all.filter(one => !/^(https?:|#)/.test(one.getAttribute('href'))).length"
        )
        == 0
    )


def test_no_attack_runs_on_any_view_or_panel(records: list[Path], tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "matrix.html"
    matrix = combine(load(records))
    write_page(matrix, path, title=ATTACKS[0])
    page = tab.open(path)
    scripts = page.eval_on_selector_all("script", "all => all.length")
    for view in VIEWS:
        page.click(f"[data-view={view}]")
        for cause in page.locator(".cause > summary").all():
            cause.evaluate("element => { element.parentNode.open = true; }")
        page.wait_for_timeout(100)
        sound(page)
    opened = set()
    for key in matrix.entries:
        version = f"{key.column.version} {key.column.machine}".strip()
        page.evaluate(
            "hash => { location.hash = hash; }", f"view=matrix&cell={quote('/'.join(key.place))}@{quote(version)}"
        )
        page.wait_for_selector("#panel .evidence[aria-busy=false]", state="attached")
        page.wait_for_function("() => !document.querySelector('#panel [aria-busy=true]')")
        opened.add(page.text_content("#panel h2") + page.text_content("#panel .where"))
    assert len(opened) == len(matrix.entries)
    sound(page)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    page.wait_for_timeout(100)
    sound(page)
    assert page.eval_on_selector_all("script", "all => all.length") == scripts


@pytest.mark.parametrize("kind", ["csv", "md", "json"])
def test_an_export_is_data(records: list[Path], tmp_path: Path, tab: Tab, kind: str) -> None:
    path = tmp_path / "matrix.html"
    write_page(combine(load(records)), path)
    for view in ("moved", "upstream", "matrix"):
        page = tab.open(path, f"#view={view}")
        page.click("#menu-export > summary")
        with page.expect_download() as download:
            page.click(f"[data-export={kind}]")
        text = Path(download.value.path()).read_text()
        if kind == "json":
            assert json.loads(text)["rows"]
        elif kind == "csv":
            assert not re.search(r"(^|,)[=@+-]", text.replace(",-", "")) or view == "matrix"
            assert not re.search(r"(^|,)=", text, re.M)
        else:
            assert not re.search(r"(?<!\\)[<>]", text)


def test_commands_to_copy_are_quoted_for_the_shell(tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "matrix.html"
    write_page(
        combine(load([write_record(tmp_path / "run.jsonl", [cell("fusion/inductor/cpu/x'; rm -rf ~; '", "fail")])])),
        path,
    )
    page = tab.open(path)
    page.click(".row:not(.family) .c.on")
    assert (
        page.locator(".cmd code").first.inner_text()
        == r"""conformance show 'fusion/inductor/cpu/x'\''; rm -rf ~; '\'''"""
    )


def test_a_large_text_does_not_make_the_page_large(tmp_path: Path, tab: Tab) -> None:
    huge = "<b>" * (2_000_000 // 3)
    lines = [
        cell(
            f"{stage}/inductor/cpu/norm.a",
            "fail",
            reason=huge,
            observation={"huge": huge},
            findings=[{"kind": "crash", "detail": huge}],
        )
        for stage in ("capture", "fusion")
    ]
    text = huge + huge[:900_000]
    lines[1] |= {"texts": {"code": trace.digest(text)}}
    path = tmp_path / "matrix.html"
    write_page(combine(load([write_record(tmp_path / "run.jsonl", lines, {"code": text})])), path)
    assert path.stat().st_size < 1 << 20
    page = tab.open(path, "#cell=fusion/inductor/cpu/norm.a@2.14.1")
    page.wait_for_function("() => document.querySelector('#panel pre')?.textContent.includes('cut here')")


# ------------------------------------------------------------------------------------------------- formats


def test_markdown_obeys_nothing(records: list[Path]) -> None:
    old, new = load(records)
    before, after, _ = sides(old, new)
    found = compare(before, after)
    documents = (
        matrix_blocks(combine([new])),
        diff_blocks(found, everything=True),
        history_blocks(history_of(combine([old, new]))),
    )
    for blocks in documents:
        text = markdown(blocks)
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        prose = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", prose)
        assert not re.search(r"<(?!https?://|/?(details|summary)>)[a-z/!]", prose, re.I)
        assert "@everyone" not in prose
        assert not re.search(r"(?<!\\)\]\(", prose)
        assert "\x1b" not in text and "\u202e" not in text


def test_code_spans_hold_backticks_and_bars() -> None:
    assert code("a`b") == "`` a`b ``"
    assert code("a|b") == "`a\\|b`"
    assert escape("a|b <i> @you #1") == "a\\|b &lt;i\\> @\u200byou \\#1"


def test_junit_is_valid_xml(records: list[Path], tmp_path: Path) -> None:
    write_junit(load(records[1:])[0], tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert int(root.get("failures", "0")) > len(ATTACKS)


def test_annotations_stay_one_command_a_line(records: list[Path]) -> None:
    found = list(annotations(load(records[1:])[0], limit=100))
    assert all(
        line.startswith(("::error ", "::warning ", "::notice ")) and not re.search("[\r\n\x1b]", line) for line in found
    )
    assert command("error", "a\nb::c%", title="x,y:z") == "::error title=x%2Cy%3Az::a b::c%25"


@pytest.mark.parametrize(
    ("width", "encoding"),
    [
        (20, "utf-8"),
        (60, "ascii"),
        (200, "latin-1"),
        *(
            pytest.param(width, encoding, marks=pytest.mark.slow)
            for width, encoding in (
                (20, "ascii"),
                (20, "latin-1"),
                (60, "utf-8"),
                (60, "latin-1"),
                (200, "utf-8"),
                (200, "ascii"),
            )
        ),
    ],
)
def test_the_terminal_gets_no_control_characters(records: list[Path], width: int, encoding: str) -> None:
    old, new = load(records)
    before, after, _ = sides(old, new)
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding=encoding, write_through=True), width=width)
    for shown in (
        matrix_table(new.cells),
        findings_list(new.cells, 50),
        reasons_list(new.cells),
        Document(list(diff_blocks(compare(before, after), True))),
    ):
        console.print(shown)
    text = raw.getvalue().decode(encoding)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u200f]", text)
    assert "[bold red]" in text or width < 60  # rich's own markup is text


# ----------------------------------------------------------------------------------------------- sanitizer


@given(st.text(), st.integers(5, 50))
def test_clean_text_is_printable_and_short(text: str, limit: int) -> None:
    shown = sanitize.text(text, limit)
    assert len(shown) <= limit
    assert all(one in "\t\n" or one.isprintable() or one.isspace() for one in shown)
    assert sanitize.text(shown, limit) == shown


def test_links_are_only_to_the_web() -> None:
    assert sanitize.link("https://github.com/x") and sanitize.link("http://a.b/c")
    for bad in (
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil",
        "file:///etc/passwd",
        " https:evil",
        "ftp://x",
        "https://a b",
        None,
        3,
    ):
        assert sanitize.link(bad) == ""


def test_reading_never_runs_what_it_reads() -> None:
    """No pickle, no eval, no YAML: the modules that read records do not know the words."""
    folder = Path(record.__file__).parent
    readers = [folder / name for name in ("record.py", "record_writer.py", "json_line.py", "files.py")]
    for file in [*readers, *(folder / "report").glob("*.py")]:
        assert not re.search(r"\b(pickle|marshal|shelve|yaml|eval|exec|__import__)\b", file.read_text()), file


def test_a_run_without_lines_has_every_report(tmp_path: Path) -> None:
    runs: list[Loaded] = load([write_record(tmp_path / "run.jsonl", [])])
    write_page(combine(runs), tmp_path / "m.html")
    markdown(matrix_blocks(combine(runs)))
