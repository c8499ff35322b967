"""The views of the page in a real browser: what moved, upstream reports, trends; a phone, a keyboard, a screen
reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import trace
from conformance.report.commands import diff as diff_command
from conformance.report.load import load
from conformance.report.matrix import combine
from conformance.report.page import write_page
from tests.support.browser import Tab, serious
from tests.support.samples import Write, cell, compile_of, finding

GRAPH = """def forward(self, x: "f32[8]"):
    {op}: "f32[8]" = torch.ops.aten.{op}.default(x);  x = None
    return ({op},)
"""
OPS = ("rsqrt", "sqrt", "reciprocal")
TEXTS = {op: GRAPH.format(op=op) for op in OPS}


def lines(version: int) -> list[dict[str, Any]]:
    """Three versions: 1 → 2 changes a decomposition in two micrographs, 2 → 3 loses a match, breaks one and fixes
    one."""
    found = []
    for name in ("norm.rms", "norm.layer"):
        op = OPS[min(version - 1, 1)]
        found += compile_of(name, "inductor", "cpu", decomposition={"ops": {f"aten.{op}.default": 1}, "digest": op})
        found[-6]["texts"] = {"graph": trace.digest(TEXTS[op])}
    match = {"matches": {"attention": int(version < 3)}}
    kernels = {"kernels": 1 if version < 3 else 4}
    found += compile_of("attention.sdpa", "inductor", "cpu", postgrad=match, fusion=kernels)
    wrong = [finding("wrong_result", "0.13 off")]
    upstream = {"upstream": ["pytorch#198094"], "title": "softmax of an empty row"}
    found.append(
        cell("runtime/inductor/cpu/edge.nan", "fail" if version == 3 else "pass", findings=wrong * (version == 3))
    )
    found.append(
        cell("runtime/inductor/cpu/edge.inf", "xfail" if version < 3 else "pass", findings=wrong * (version < 3))
    )
    found[-1] |= upstream
    found += compile_of("mlp.same", "inductor", "cpu", capture={"guards": {f"G{version}": 1}})
    found += compile_of("mlp.same", "inductor", "sm_90")
    return found


def records(write: Write) -> list[Path]:
    versions = {1: "2.11.0", 2: "2.12.0", 3: "2.15.0"}
    return [write(f"{torch}.jsonl", lines(version), TEXTS, torch=torch) for version, torch in versions.items()]


@pytest.fixture
def made(write: Write, tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    write_page(combine(load(records(write))), path)
    return path


def causes(page: Any) -> list[str]:
    """`class | stage | what`, as they are shown."""
    return page.eval_on_selector_all(
        ".class .cause",
        """all => all.map(one => [one.closest('.class').id.slice(6), one.querySelector('.stage').textContent,
          one.querySelector('.what').textContent, one.querySelector('.n').textContent].join(' | '))""",
    )


# --------------------------------------------------------------------------------------------- what moved


def test_the_page_opens_on_the_two_newest_versions(made: Path, tab: Tab) -> None:
    page = tab.open(made)
    assert page.get_attribute("#views [aria-current=page]", "data-view") == "moved"
    assert causes(page) == [
        "wrong | runtime | pass → fail (wrong_result) | 1 compile",
        "fixed | runtime | xfail → pass (wrong_result) | 1 compile",
        "lost | postgrad | matches.attention 1 → 0 | 1 compile",
        "bookkeeping | capture | guards.G2 1 → 0, guards.G3 0 → 1 | 1 compile",
    ]
    assert page.locator("#class-bookkeeping .cause").first.is_hidden()  # until asked for
    counts = page.locator(".counts .count").all_inner_texts()
    assert counts == ["✗ 1 wrong or crash", "✓ 1 fixed", "↩ 1 fallback or lost match"]
    rows = page.locator(".differ tbody th code").all_inner_texts()
    assert rows == ["attention.sdpa", "edge.inf", "edge.nan"]  # only those that differ
    assert page.locator(".differ tr:has-text('attention.sdpa') .c.first").count() == 2  # the first stage, old and new


def test_any_two_versions_can_be_compared_and_the_address_keeps_them(made: Path, tab: Tab) -> None:
    page = tab.open(made)
    page.click(".series:has-text('cpu') .version:has-text('2.12.0')")
    assert page.inner_text(".headline h2") == "inductor cpu: 2.11.0 → 2.12.0"
    assert causes(page)[0] == "code | decomposition | aten.rsqrt 1 → 0, aten.sqrt 0 → 1 | 2 compiles"
    page.select_option(".chooser label:has-text('to') select", label="2.15.0")
    assert page.inner_text(".headline h2") == "inductor cpu: 2.11.0 → 2.15.0"
    assert [text.split(" | ")[0] for text in causes(page)] == ["wrong", "fixed", "lost", "code", "bookkeeping"]
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-painted]")
    assert page.inner_text(".headline h2") == "inductor cpu: 2.11.0 → 2.15.0"
    page.click("button:text('All: the two newest of each')")
    assert page.inner_text(".headline h2") == "The two newest versions of each series"


def test_a_cause_shows_its_compiles_the_graphs_and_the_commands(made: Path, tab: Tab) -> None:
    page = tab.open(made, "#pair=inductor cpu: 2.11.0 .. 2.12.0")
    page.click(".cause:has-text('aten.rsqrt') > summary")
    page.wait_for_selector(".cause .sides")
    assert page.locator(".cause .members .name").all_inner_texts() == ["norm.layer", "norm.rms"]
    gone = page.locator(".cause .sides td.del:not(.m)").all_inner_texts()
    come = page.locator(".cause .sides td.add:not(.m)").all_inner_texts()
    assert any("aten.rsqrt" in line for line in gone) and any("aten.sqrt" in line for line in come)
    assert (
        "conformance triage decomposition/inductor/cpu/norm.layer" in page.locator(".cause .cmd code").all_inner_texts()
    )


def test_the_panel_tells_what_differs_from_the_other_version(made: Path, tab: Tab) -> None:
    page = tab.open(
        made, "#view=moved&pair=inductor cpu: 2.11.0 .. 2.12.0&cell=decomposition/inductor/cpu/norm.rms@2.12.0"
    )
    page.wait_for_selector("#panel .against .sides")
    facts = page.locator("#panel .against table.facts tr").all_inner_texts()
    assert facts == ["ops.aten.rsqrt.default\t1 → 0", "ops.aten.sqrt.default\t0 → 1", "digest\trsqrt → sqrt"]
    assert "graph, 2.11.0 and 2.12.0" in page.inner_text("#panel .against")


def test_filters_choose_causes(made: Path, tab: Tab) -> None:
    page = tab.open(made)
    page.fill("#q", "attention")
    assert [text.split(" | ")[1] for text in causes(page)] == ["postgrad"]
    page.click("#reset")
    page.click("#menu-stage > summary")
    page.check('#menu-stage input[value="runtime"]')
    assert {text.split(" | ")[1] for text in causes(page)} == {"runtime"}


def test_what_moved_can_be_exported(made: Path, tab: Tab) -> None:
    page = tab.open(made)
    page.click("#menu-export > summary")
    with page.expect_download() as download:
        page.click("[data-export=json]")
    rows = json.loads(Path(download.value.path()).read_text())["rows"]
    assert rows[2] == {
        "class": "fallback or lost match",
        "stage": "postgrad",
        "cause": "matches.attention 1 → 0",
        "then": "fusion kernels 1 → 4 (1 of 1)",
        "compiles": 1,
        "series": "inductor cpu 2.12.0 → 2.15.0",
        "micrographs": "attention.sdpa",
    }


def test_machines_are_apart(write: Write, tmp_path: Path, tab: Tab) -> None:
    """The same versions on two machines: no comparison, no trend."""
    for machine, kernels, torch in (("aarch64", 1, "2.11.0"), ("x86_64", 2, "2.15.0")):
        env = {"torch": torch, "machine": machine, "backends": {"inductor": {"torch": torch}}}
        write(f"records/{machine}.jsonl", compile_of("a.b", "inductor", "cpu", fusion={"kernels": kernels}), env=env)
    path = tmp_path / "page.html"
    write_page(combine(load((tmp_path / "records").glob("*.jsonl"))), path)
    page = tab.open(path)
    assert page.locator("#views button").all_inner_texts() == ["Matrix", "Trends", "Time"]
    page.click("[data-view=trends]")
    assert "one version of each backend, target and machine" in page.inner_text("#view")


def test_a_diff_of_one_version_has_a_page_too(write: Write, tmp_path: Path, tab: Tab) -> None:
    """A patched compiler against the same version: two columns, named old and new."""
    one = write("plain.jsonl", compile_of("a.b", "inductor", "cpu", postgrad={"matches": {"m": 1}}))
    two = write("patched.jsonl", compile_of("a.b", "inductor", "cpu", postgrad={"matches": {}}))
    diff_command.main([str(one), str(two), "-o", str(tmp_path / "diff.html")], standalone_mode=False)
    page = tab.open(tmp_path / "diff.html")
    assert page.inner_text(".headline h2") == "inductor cpu: 2.14.1 old → 2.14.1 new"
    assert causes(page) == ["lost | postgrad | matches.m 1 → 0 | 1 compile"]


def test_a_diff_of_two_backends_has_a_page_too(write: Write, tmp_path: Path, tab: Tab) -> None:
    one = write("one.jsonl", compile_of("a.b", "inductor", "cpu"))
    two = write("two.jsonl", compile_of("a.b", "torch_tensorrt", "cuda", {"fusion": "fallback"}))
    diff_command.main([str(one), str(two), "-o", str(tmp_path / "diff.html")], standalone_mode=False)
    page = tab.open(tmp_path / "diff.html")
    assert causes(page) == ["lost | fusion | pass → fallback | 1 compile"]
    assert page.locator(".differ .c").count() == 14


# ----------------------------------------------------------------------------------------------- upstream


def test_upstream_reports_by_release(made: Path, tab: Tab) -> None:
    page = tab.open(made, "#view=upstream")
    head = [text.replace("\n", " ") for text in page.locator(".reports thead th").all_inner_texts()]
    assert head == ["report", "stage", "inductor cpu 2.11.0", "inductor cpu 2.12.0", "inductor cpu 2.15.0"]
    assert page.locator(".reports .state").all_inner_texts() == ["✗ alive", "✗ alive", "✓ fixed"]
    assert page.get_attribute(".reports a", "href") == "https://github.com/pytorch/pytorch/issues/198094"
    assert page.get_attribute(".reports button.icon", "title") == "conformance triage runtime/inductor/cpu/edge.inf"
    page.click(".reports .state >> nth=1")
    page.wait_for_selector("#panel .evidence[aria-busy=false]")
    assert "0.13 off" in page.inner_text("#panel")


# ------------------------------------------------------------------------------- what was clicked, a phone

VIEWS = ("moved", "upstream", "matrix", "trends", "time")
CLICKED = {
    "moved": ".differ .c >> nth=10",
    "upstream": ".reports .state >> nth=2",
    "matrix": ".row:not(.family) .c.on >> nth=12",
}
ON_TOP = """element => {
  const box = element.getBoundingClientRect();
  const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return element === at || element.contains(at);
}"""
CLIPPED = """() => [...document.querySelectorAll('header *, #view *, #panel *, #legend, .row .name')].filter(one => {
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  if (!box.width || !one.checkVisibility({contentVisibilityAuto: true})) return false;
  if (one.closest('.wide, .scroll, svg')) return false;
  const hides = style.overflowX === 'hidden' || style.overflowX === 'clip';
  return hides && one.scrollWidth > one.clientWidth + 1 || box.right > innerWidth + 1 && !one.closest('#grid');
}).map(one => one.className + ' ' + one.textContent.slice(0, 60))"""


@pytest.mark.parametrize("view", CLICKED)
@pytest.mark.parametrize("size", ["tab", "phone"])
def test_the_panel_never_covers_what_was_clicked(
    made: Path, view: str, size: str, request: pytest.FixtureRequest
) -> None:
    page = request.getfixturevalue(size).open(made, f"#view={view}")
    clicked = page.locator(CLICKED[view])
    clicked.click()
    page.wait_for_selector("#panel .evidence[aria-busy=false]")
    page.wait_for_timeout(200)
    if view == "matrix":
        clicked = page.locator("#at")
    assert clicked.evaluate(ON_TOP)
    assert page.locator("#panel").bounding_box()["height"] > 300


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_clipped_on_a_phone(made: Path, view: str, phone: Tab) -> None:
    page = phone.open(made, f"#view={view}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("header").bounding_box()["height"] <= 844 / 5
    assert page.evaluate(CLIPPED) == []
    page.click("#filterbox > summary")
    assert page.evaluate(CLIPPED) == []


# Text of a picture that is outside it; tables that must be scrolled sideways to see what they say.
UNREAD = """() => [...document.querySelectorAll('#view svg text')].filter(text => {
  const box = text.getBoundingClientRect(), all = text.closest('svg').getBoundingClientRect();
  return box.width && (box.right > all.right + 1 || box.left < all.left - 1);
}).map(text => text.textContent).concat([...document.querySelectorAll('.wide:has(.differ, .reports)')]
  .filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.slice(0, 60)))"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of five committed records of Inductor: long names, several versions and machines, public reports."""
    path = tmp_path_factory.mktemp("published") / "page.html"
    names = (
        "cpu-x86_64-torch2.11.0",
        "cpu-x86_64-torch2.15.0",
        "sm_90-torch2.14.1",
        "sm_80-torch2.14.1",
        "h200-torch2.14",
    )
    records = [Path(__file__).parents[2] / "reports" / f"{name}-inductor.jsonl" for name in names]
    write_page(combine(load(records)), path, any_revision=True)
    return path


@pytest.mark.parametrize("view", VIEWS)
def test_the_published_records_can_be_read_on_a_phone(published: Path, view: str, phone: Tab) -> None:
    page = phone.open(published, f"#view={view}")
    assert page.get_attribute("#views [aria-current=page]", "data-view") == view
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(UNREAD) == []
    assert page.locator("header").bounding_box()["height"] <= 844 / 5


def test_the_headings_of_the_matrix_are_whole(published: Path, tab: Tab) -> None:
    page = tab.open(published, "#view=matrix")
    cut = """() => [...document.querySelectorAll("#head .group :is(b, span)")]
      .filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"""
    assert page.locator("#head .group").count() > 3
    assert page.evaluate(cut) == []


def test_a_table_beside_the_panel_is_whole_and_no_tip_covers_it(published: Path, tab: Tab) -> None:
    page = tab.open(published, "#view=moved")
    page.locator(".differ .c.first").first.click()
    page.wait_for_selector("#panel .evidence[aria-busy=false]")
    assert page.evaluate(UNREAD) == []
    page = tab.open(published, "#view=matrix")
    page.locator(".row:not(.family) .c.on").nth(5).click()
    page.wait_for_selector("#panel .evidence[aria-busy=false]")
    page.wait_for_timeout(200)
    assert page.locator("#tip.on").count() == 0


def test_two_graphs_stand_one_above_the_other_on_a_phone(made: Path, phone: Tab) -> None:
    page = phone.open(made, "#pair=inductor cpu: 2.11.0 .. 2.12.0")
    page.click(".cause:has-text('aten.rsqrt') > summary")
    page.wait_for_selector(".cause .sides")
    shown = "all => all.filter(one => one.checkVisibility() && one.textContent).map(one => one.getBoundingClientRect().width)"
    widths = page.eval_on_selector_all(".cause .sides td:not(.m, .fold)", shown)
    assert len(widths) == 5 and min(widths) > 250  # of three lines two differ
    assert page.evaluate(CLIPPED) == []


def test_the_answer_is_the_first_thing_on_a_phone(made: Path, phone: Tab) -> None:
    page = phone.open(made)
    assert page.locator("#class-wrong .cause").bounding_box()["y"] < 844


# --------------------------------------------------------------------------------- keyboard, screen reader


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1400, "light"),
        (390, "dark"),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((1400, "dark"), (390, "light"))),
    ],
)
def test_axe_finds_nothing_serious(made: Path, chromium: Any, axe: str, scheme: str, width: int) -> None:
    tab = Tab(chromium, width, 844, color_scheme=scheme)
    for view in VIEWS:
        page = tab.open(made, f"#view={view}")
        if view == "moved":
            for cause in page.locator(".cause > summary").all()[:3]:
                cause.click()
        if view in CLICKED:
            page.locator(CLICKED[view]).click()
            page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
        assert serious(page, axe) == [], view
    tab.context.close()


def test_everything_can_be_reached_with_the_keyboard(made: Path, tab: Tab) -> None:
    page = tab.open(made)
    page.focus(".cause > summary")
    page.keyboard.press("Enter")
    page.wait_for_selector(".cause .members")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "name"
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel .evidence[aria-busy=false]")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.keyboard.press("Escape")
    assert page.is_hidden("#panel") and page.evaluate("document.activeElement.className") == "name"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"


def test_versions_of_two_revisions_of_the_suite_are_no_line(write: Write, tmp_path: Path, tab: Tab) -> None:
    """Other code made the older record's facts: that they differ says nothing about the compiler, and nothing is drawn."""
    lines = [cell("fusion/inductor/cpu/norm.rms", "pass", observation={"kernels": n}) for n in (1, 2)]
    old = write(
        "old.jsonl", lines[:1], torch="2.11.0", suite="aaa", commit="0123456-dirty", started="2026-11-15T08:00:00"
    )
    new = write("new.jsonl", lines[1:], torch="2.15.0", suite="bbb", commit="89abcde", started="2026-11-16T08:00:00")
    write_page(combine(load([old, new])), tmp_path / "page.html")
    page = tab.open(tmp_path / "page.html")
    assert "2026-11-15 to 2026-11-16, dirty tree, each of another revision of the suite" in page.inner_text(
        ".axis .label"
    )
    assert "not comparable" in page.inner_text(".versions")
    page.click("#views [data-view=trends]")
    assert page.locator(".trend").count() == 0
    assert "1 compile is not drawn: another revision" in page.inner_text("#view")
    page.click("#views [data-view=matrix]")
    assert "2026-11-16" in page.inner_text("#head")


def test_a_cause_stays_readable_beside_the_panel(write: Write, tmp_path: Path, tab: Tab) -> None:
    write_page(combine(load(records(write))), tmp_path / "page.html")
    page = tab.open(tmp_path / "page.html")
    page.click(".cause >> nth=0")
    page.click(".cause[open] button.name >> nth=0")
    assert page.locator("#panel").is_visible()
    assert page.locator(".cause .what").first.bounding_box()["width"] > 250
