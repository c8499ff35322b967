"""Nothing in a record can run code, break a page, or escape from a format. A record is data from anybody."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import Tab, Write, cell, header
from rich.console import Console

from conformance import record, trace
from conformance.report import sanitize
from conformance.report.annotations import annotations, command
from conformance.report.diff import compare
from conformance.report.history import trace as history_of
from conformance.report.junit import write_junit
from conformance.report.load import Loaded, load
from conformance.report.markdown import code, escape, matrix_markdown
from conformance.report.matrix import combine
from conformance.report.page import write_page
from conformance.report.render_diff import DiffTable, diff_json, diff_markdown, diff_page
from conformance.report.render_history import history_page
from conformance.report.terminal import findings_list, matrix_table

RUN = "window.hacked = true"
ATTACKS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<!--<script>{RUN}",
    f"<img src=x onerror='{RUN}'>",
    f'"><svg onload={RUN}>',
    f"' onmouseover='{RUN}",
    f"{{{{ ''.__class__ }}}} ${{{RUN}}}",
    f"javascript:{RUN}",
    f"]]>{RUN}<![CDATA[",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b5m",
    "\u202egnp.exe \u2028 \u2029 \ufeff",
    "a\x00b\x08c\x7f\ud800\udfff\ufffe",
    "../../../etc/passwd",
    "%0A::error::injected\n::error::injected",
    "| a | `b` **c** @everyone <b>d</b> [x](javascript:alert(1))",
    "__proto__",
    "constructor",
    "x" * 5_000,
]


def hostile_cells() -> list[dict[str, Any]]:
    lines = []
    for number, attack in enumerate(ATTACKS):
        lines.append(
            cell(
                f"fusion/{attack[:40].replace('/', ' ')}/cpu/{attack}",
                "fail",
                reason=attack,
                findings=[{"kind": attack, "check": attack, "detail": attack}],
                observation={attack: {attack: [attack, attack]}, "kernels": attack, "matches": {attack: 1}},
                texts={
                    attack: trace.digest(attack),
                    "graph before": trace.digest(attack),
                    "graph after": trace.digest(attack),
                    "bad": attack,
                },
                url=attack,
                micrograph=attack,
            )
        )
        lines.append(cell(f"{attack}/inductor/{attack}/norm.n{number}", attack[:30]))
    return lines


@pytest.fixture
def hostile(write: Write) -> Path:
    texts = {str(k): attack for k, attack in enumerate(ATTACKS)}
    env = {
        "torch": ATTACKS[1],
        "machine": ATTACKS[3],
        "backends": {ATTACKS[0]: {ATTACKS[1]: ATTACKS[2]}, "inductor": {"torch": ATTACKS[1]}},
    }
    return write("run.jsonl", hostile_cells(), texts, env=env, suite=ATTACKS[0], argv=ATTACKS, started=ATTACKS[1])


def test_no_attack_runs_on_the_page(hostile: Path, tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "matrix.html"
    matrix = combine(load([hostile]))
    write_page(matrix, path, title=ATTACKS[1])
    page = tab.open(path)
    scripts = page.eval_on_selector_all("script", "all => all.length")
    assert scripts == 3  # the data, the inline evidence, our own
    for view in ("heat", "trends", "time", "matrix"):
        page.click(f"[data-view={view}]")
    opened = set()
    for key, entry in matrix.entries.items():
        page.evaluate("hash => { location.hash = hash; }", f"cell={quote(entry.name)}@{quote(key.column.variant)}")
        page.wait_for_selector("#panel .evidence[aria-busy=false]", state="attached")
        page.wait_for_function("() => !document.querySelector('#panel [aria-busy=true]')")
        assert page.locator("#panel a[href]:not([href^='http'])").count() == 0
        opened.add(page.text_content("#panel h2") + page.text_content("#panel .where"))
    assert len(opened) == len(matrix.entries) == 2 * len(ATTACKS)
    page.locator("details.menu").evaluate_all("all => all.forEach(one => { one.open = true; })")
    page.wait_for_timeout(100)
    assert page.evaluate("window.hacked") is None
    assert page.eval_on_selector_all("img, iframe, object, embed, form, [onerror], [onload], [onmouseover]", "all => all.length") == 0


def test_commands_to_copy_are_quoted_for_the_shell(write: Write, tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "matrix.html"
    write_page(combine(load([write("run.jsonl", [cell("fusion/inductor/cpu/x'; rm -rf ~; '", "fail")])])), path)
    page = tab.open(path)
    page.click(".row:not(.family) .c.on")
    assert page.locator(".cmd code").first.inner_text() == r"""conformance show 'fusion/inductor/cpu/x'\''; rm -rf ~; '\'''"""


def test_static_pages_hold_only_text(hostile: Path, write: Write, tab: Tab, tmp_path: Path) -> None:
    old, new = load([write("old.jsonl", [cell(line["cell"]) for line in hostile_cells()])])[0], load([hostile])[0]
    for name, text in {"diff": diff_page(compare(old, new)), "history": history_page(history_of([old, new]))}.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        tab.page.goto(path.as_uri())
        assert tab.page.eval_on_selector_all("script, img, [onerror], [onload], [onmouseover]", "all => all.length") == 0
        assert tab.page.evaluate("window.hacked") is None


def test_ten_megabytes_do_not_make_the_page_large(write: Write, tmp_path: Path, tab: Tab) -> None:
    huge = "<b>" * (10_000_000 // 3)
    lines = [
        cell(
            f"{stage}/inductor/cpu/norm.a",
            "fail",
            reason=huge,
            observation={"huge": huge},
            findings=[{"kind": "crash", "check": "X", "detail": huge}],
        )
        for stage in ("capture", "fusion")
    ]
    lines[1] |= {"texts": {"code": trace.digest(huge)}}
    path = tmp_path / "matrix.html"
    written = write_page(combine(load([write("run.jsonl", lines, {"code": huge})])), path)
    assert sum(file.stat().st_size for file in written) < 20 << 20 and path.stat().st_size < 1 << 20
    page = tab.open(path, "#cell=fusion/inductor/cpu/norm.a@2.14.1")
    page.wait_for_function("() => document.querySelector('#panel pre')?.textContent.includes('cut here')")


def test_a_digest_cannot_name_another_file(write: Write, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    run = load([write("run.jsonl", [cell("fusion/inductor/cpu/a.b", texts={"code": "../secret", "more": "..%2fsecret"})])])[0]
    assert run.text("../secret", 100) is None
    written = write_page(combine([run]), tmp_path / "matrix.html")
    assert "the secret" not in written[0].read_text()


def test_markdown_obeys_nothing(hostile: Path, write: Write) -> None:
    new = load([hostile])[0]
    old = load([write("old.jsonl", [cell(line["cell"]) for line in hostile_cells()])])[0]
    for text in (matrix_markdown(combine([new])), diff_markdown(compare(old, new))):
        prose = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
        assert not re.search(r"<(?!https?://)[a-z/!]", prose, re.I)
        assert "@everyone" not in prose
        assert not re.search(r"(?<!\\)\]\(", prose)
        assert "\x1b" not in text and "\u202e" not in text


def test_code_spans_hold_backticks_and_bars() -> None:
    assert code("a`b") == "`` a`b ``"
    assert code("a|b") == "`a\\|b`"
    assert escape("a|b <i> @you #1") == "a\\|b &lt;i> @\u200byou \\#1".replace("i>", "i\\>")


def test_junit_is_valid_xml(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "junit.xml"
    write_junit(load([hostile])[0], out)
    root = ElementTree.parse(out).getroot()
    assert int(root.get("failures", "0")) == sum(1 for line in hostile_cells() if line["verdict"] == "fail")


def test_annotations_stay_one_command_a_line(hostile: Path) -> None:
    lines = list(annotations(load([hostile])[0], limit=100))
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) and "\n" not in line and "\r" not in line for line in lines)
    assert command("error", "a\nb::c%", title="x,y:z") == "::error title=x%2Cy%3Az::a b::c%25"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("width", [20, 60, 200])
def test_the_terminal_gets_no_control_characters(hostile: Path, tmp_path: Path, width: int, encoding: str) -> None:
    run = load([hostile])[0]
    with open(tmp_path / "out", "w", encoding=encoding) as file:
        console = Console(file=file, width=width)
        console.print(matrix_table(run.cells))
        console.print(findings_list(run.cells, 50))
        console.print(DiffTable(compare(run, run)))
    said = (tmp_path / "out").read_text(encoding=encoding)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.sampled_from(ATTACKS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["verdict", "reason", "findings", "observation", "texts", "seconds", "micrograph", "url", "reused"]


@settings(max_examples=40, deadline=None)
@given(
    heads=st.dictionaries(st.sampled_from(["suite", "env", "argv", "started", "expectations"]), ANY),
    lines=st.lists(st.dictionaries(st.sampled_from(FIELDS), ANY), max_size=5),
)
def test_any_json_is_shown(tmp_path_factory: pytest.TempPathFactory, heads: dict[str, Any], lines: list[dict[str, Any]]) -> None:
    """Fields of any type: every format is still written."""
    folder = tmp_path_factory.mktemp("any")
    path = folder / "run.jsonl"
    said = [{**header(), **heads}, *({"cell": f"fusion/inductor/cpu/a.n{k}", **line} for k, line in enumerate(lines))]
    path.write_text("\n".join(json.dumps(one) for one in said) + "\n")
    runs = load([path])
    matrix = combine(runs)
    write_page(matrix, folder / "matrix.html")
    assert len(matrix.entries) == len(lines)
    matrix_markdown(matrix)
    write_junit(runs[0], folder / "junit.xml")
    ElementTree.parse(folder / "junit.xml")
    changed = compare(runs[0], Loaded(path, header(), {}))
    json.dumps(diff_json(changed), allow_nan=False)
    diff_page(changed)
    history_page(history_of(runs))


@given(st.text(), st.integers(5, 50))
def test_clean_text_is_printable_and_short(text: str, limit: int) -> None:
    said = sanitize.text(text, limit)
    assert len(said) <= limit
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", said)
    assert sanitize.text(said, limit) == said


def test_links_are_only_to_the_web() -> None:
    assert sanitize.link("https://github.com/x") and sanitize.link("http://a.b/c")
    for bad in ("javascript:alert(1)", "data:text/html,x", "//evil", "file:///etc/passwd", " https:evil", "ftp://x", None, 3):
        assert sanitize.link(bad) == ""


def test_reading_never_runs_what_it_reads() -> None:
    """No pickle, no eval, no YAML: the modules that read records do not know the words."""
    folder = Path(record.__file__).parent
    for file in [folder / "record.py", *(folder / "report").glob("*.py")]:
        assert not re.search(r"\b(pickle|marshal|shelve|yaml|eval|exec|__import__)\b", file.read_text()), file
