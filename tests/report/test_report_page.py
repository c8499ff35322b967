"""The matrix on the page, in a real browser: filters, opening a cell, links, keys, pictures."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conformance import trace
from conformance.report.load import load
from conformance.report.matrix import combine
from conformance.report.page import write_page
from tests.support.browser import Tab
from tests.support.samples import STAGES, Write, cell, compile_of

BEFORE = """def forward(self, x: "f32[8, 8]", y: "f32[8, 8]"):
    # the residual
    add: "f32[8, 8]" = torch.ops.aten.add.Tensor(x, y);  x = y = None
    relu: "f32[8, 8]" = torch.ops.aten.relu.default(add);  add = None
    return (relu,)
"""
AFTER = """def forward(self, x: "f32[8, 8]", y: "f32[8, 8]"):
    # the residual
    fused: "f32[8, 8]" = torch.ops.fused.add_relu.default(x, y);  x = y = None
    return (fused,)
"""
TRITON = "import triton\n\n@triton.jit\ndef kernel(x_ptr, BLOCK: tl.constexpr):\n    # adds\n    return 'a' + 1\n"
TEXTS = {"before": BEFORE, "after": AFTER, "code": TRITON}


CONTRAST = """() => {
  const paint = (...colours) => {
    const c = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
    for (const colour of colours) { c.fillStyle = colour; c.fillRect(0, 0, 1, 1); }
    return [...c.getImageData(0, 0, 1, 1).data];
  };
  const linear = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = rgb => .2126 * linear(rgb[0]) + .7152 * linear(rgb[1]) + .0722 * linear(rgb[2]);
  const ground = getComputedStyle(document.body).backgroundColor;
  return Object.fromEntries([...document.querySelectorAll('.row:not(.family) .c.on')].map(cell => {
    const {backgroundColor, color} = getComputedStyle(cell);
    const a = light(paint(ground, backgroundColor)), b = light(paint(ground, backgroundColor, color));
    return [cell.closest('.row').firstChild.title, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)];
  }));
}"""


def cells() -> list[dict[str, Any]]:
    """norm.a: only inductor fails at fusion. norm.b: two fail. norm.c: the others were not seen. mlp.d: all pass."""
    lines = []
    for name, verdicts in {
        "norm.a": ("fail", "pass", "pass"),
        "norm.b": ("fail", "fallback", "pass"),
        "norm.c": ("fail", "unavailable", "unavailable"),
        "mlp.d": ("pass", "pass", "pass"),
        "mlp.e": ("pass", "pass", "error"),
    }.items():
        lines += compile_of(name, "eager", "cpu")
        for (backend, target), verdict in zip(
            [("inductor", "cpu"), ("torch_tensorrt", "cuda"), ("autodeploy", "cpu")], verdicts, strict=True
        ):
            lines += compile_of(
                name, backend, target, {"fusion": verdict}, fusion={"kernels": 2, "groups": ["add", "relu"]}
            )
    for line in lines:
        if line["cell"] == "fusion/inductor/cpu/norm.a":
            line |= {
                "reason": "2 kernels, contract allows 1",
                "findings": [{"kind": "unfused", "check": "FUS001", "detail": "add and relu stayed apart"}],
                "url": "https://github.com/pytorch/pytorch/issues/190886",
                "texts": {
                    "graph before": trace.digest(BEFORE),
                    "graph after": trace.digest(AFTER),
                    "code": trace.digest(TRITON),
                },
            }
            line["observation"] |= {
                "matches": {"add_relu": 1},
                "guards": ["TENSOR_MATCH x"],
                "counters": {"fxgraph_cache_miss": 1},
            }
    return lines


@pytest.fixture
def page(write: Write, tmp_path: Path, tab: Tab) -> Any:
    path = tmp_path / "matrix.html"
    write_page(combine(load([write("run.jsonl", cells(), TEXTS)])), path)
    return tab.open(path)


def names(page: Any) -> list[str]:
    return page.eval_on_selector_all(".row:not(.family) .name", "all => all.map(one => one.title)")


def groups(page: Any) -> list[str]:
    return page.eval_on_selector_all("#head .group b", "all => all.map(one => one.textContent)")


def choose(page: Any, menu: str, *values: str) -> None:
    page.click(f"#menu-{menu} > summary")
    for value in values:
        page.check(f'#menu-{menu} input[value="{value}"]')
    page.keyboard.press("Escape")


def bright(page: Any) -> list[str]:
    """The cells that the filters choose, as micrograph/backend/stage."""
    page.wait_for_timeout(50)
    return page.evaluate(
        """() => [...document.querySelectorAll('.row:not(.family) .c.on:not(.off)')].map(one =>
        one.closest('.row').firstChild.title)"""
    )


# ------------------------------------------------------------------------------------------------ filters


def test_all_is_shown_with_a_sign_in_every_cell(page: Any) -> None:
    assert names(page) == ["mlp.d", "mlp.e", "norm.a", "norm.b", "norm.c"]
    assert groups(page) == ["autodeploy", "eager", "inductor", "torch_tensorrt"]
    signs = page.eval_on_selector_all(".row:not(.family) .c.on", "all => all.map(one => one.textContent)")
    assert len(signs) == 5 * 4 * 7
    assert set(signs) == {"✓", "✗", "↩", "·", "E"}


def test_totals_have_denominators_and_only_pass_is_a_pass(page: Any) -> None:
    # 140 cells: 3 fail, 1 fallback, 2 unavailable, 1 error
    assert page.text_content("#totals") == "133 of 140 cells pass, 138 were judged"
    assert "35 of 35" in page.text_content("#head .group:has(b:text-is('eager'))")
    assert "32 of 35" in page.text_content("#head .group:has(b:text-is('inductor'))")


@pytest.mark.parametrize("stage", ["capture", "cache"])
def test_filter_by_stage(page: Any, stage: str) -> None:
    choose(page, "stage", stage)
    letters = page.eval_on_selector_all("#head .letters i", "all => all.map(one => one.title)")
    assert set(letters) == {stage}
    assert page.text_content("#totals") == "20 of 20 cells pass"


def test_filter_by_backend_and_target(page: Any) -> None:
    choose(page, "backend", "inductor", "torch_tensorrt")
    assert groups(page) == ["inductor", "torch_tensorrt"]
    choose(page, "target", "cuda")
    assert groups(page) == ["torch_tensorrt"]


def test_filter_by_family(page: Any) -> None:
    choose(page, "family", "mlp")
    assert names(page) == ["mlp.d", "mlp.e"]


def test_filter_by_verdict_keeps_rows_that_have_one_and_dims_the_others(page: Any) -> None:
    page.click("[data-verdict=fail]")
    assert names(page) == ["norm.a", "norm.b", "norm.c"]
    assert bright(page) == ["norm.a", "norm.b", "norm.c"]
    assert groups(page) == ["inductor"]  # and no column that has none
    page.click("[data-verdict=error]")
    assert bright(page) == ["mlp.e", "norm.a", "norm.b", "norm.c"]
    assert groups(page) == ["autodeploy", "inductor"]


@pytest.mark.parametrize(
    "kind, starts",
    [
        (
            "csv",
            "cell,version,machine,verdict,reason,seconds\n"
            'fusion/inductor/cpu/norm.a,2.14.1,,fail,"2 kernels, contract allows 1",0.1\n',
        ),
        ("md", "| cell | version | machine | verdict | reason | seconds |\n"),
        ("json", '{\n "address": "#verdict=fail",'),
    ],
)
def test_what_the_filters_leave_can_be_exported(page: Any, kind: str, starts: str) -> None:
    page.click("[data-verdict=fail]")
    page.click("#menu-export > summary")
    with page.expect_download() as download:
        page.click(f"[data-export={kind}]")
    assert download.value.suggested_filename == f"matrix.{kind}"
    text = Path(download.value.path()).read_text()
    assert text.startswith(starts) and text.count("fusion/inductor/cpu") == 3


def test_the_letters_of_the_stages_have_a_legend(page: Any) -> None:
    assert page.inner_text("#legend") == "Stages: " + " · ".join(
        f"{letter} {stage}" for letter, stage in zip("cdpfgrk", STAGES, strict=True)
    )


def test_filter_by_kind(page: Any) -> None:
    choose(page, "kind", "unfused")
    assert bright(page) == ["norm.a"]


@pytest.mark.parametrize(
    "text, found", [("NORM.", ["norm.a", "norm.b", "norm.c"]), ("stayed apart", ["norm.a"]), ("allows 1", ["norm.a"])]
)
def test_filter_by_text_of_name_reason_and_finding(page: Any, text: str, found: list[str]) -> None:
    page.fill("#q", text)
    assert names(page) == found


def test_a_reason_stands_beside_its_row_where_there_is_room(page: Any) -> None:
    assert page.locator(".why:text('2 kernels')").inner_text() == "fusion: 2 kernels, contract allows 1"


def test_nothing_found_says_so_and_clear_brings_all_back(page: Any) -> None:
    page.fill("#q", "no such thing")
    assert "Nothing here" in page.text_content("#body")
    page.click("#reset")
    assert len(names(page)) == 5


def test_only_this_backend_fails(page: Any) -> None:
    choose(page, "only", "inductor")
    assert bright(page) == ["norm.a"]  # norm.b: another falls back; norm.c: no other was seen to pass
    choose(page, "only", "autodeploy")
    assert bright(page) == ["mlp.e"]
    choose(page, "only", "torch_tensorrt")
    assert bright(page) == []


# ---------------------------------------------------------------------------------------------- evidence


def open_fusion(page: Any) -> None:
    page.fill("#q", "norm.a")
    choose(page, "stage", "fusion")
    choose(page, "backend", "inductor")
    page.click(".row:not(.family) .c.on")
    page.wait_for_selector("#panel .evidence[aria-busy=false]")
    page.wait_for_function("() => !document.querySelector('#panel .text[aria-busy=true]')")


def test_a_cell_opens_its_evidence(page: Any) -> None:
    open_fusion(page)
    panel = page.inner_text("#panel")
    assert "norm.a" in panel and "fusion · inductor cpu" in panel
    assert page.inner_text("#opened-verdict") == "✗ fail"
    for said in ("2 kernels, contract allows 1", "unfused", "FUS001", "add and relu stayed apart"):
        assert said in panel
    for said in ("add_relu", "TENSOR_MATCH x", "fxgraph_cache_miss", "kernels", "add, relu"):
        assert said in panel
    assert "conformance show fusion/inductor/cpu/norm.a" in panel
    assert "pytest -m stage_fusion --backend inductor --target cpu --micrograph norm.a" in panel
    assert page.get_attribute("#panel .titlebar a", "href").endswith("cell=fusion/inductor/cpu/norm.a@2.14.1")
    link = page.query_selector("#panel a[target]")
    assert link.get_attribute("href") == "https://github.com/pytorch/pytorch/issues/190886"
    assert "noopener" in link.get_attribute("rel")


def test_graphs_stand_side_by_side_with_their_differences_marked(page: Any) -> None:
    open_fusion(page)
    table = page.query_selector("#panel .sides")
    assert table.get_attribute("data-differences") == "3"
    gone = page.eval_on_selector_all("#panel .sides td.del:not(.m)", "all => all.map(one => one.textContent)")
    come = page.eval_on_selector_all("#panel .sides td.add:not(.m)", "all => all.map(one => one.textContent)")
    assert gone == BEFORE.splitlines()[2:] and come == AFTER.splitlines()[2:]


def test_a_graph_stands_beside_that_of_the_stage_before(write: Write, tmp_path: Path, tab: Tab) -> None:
    lines = compile_of("norm.a", "inductor", "cpu")
    lines[0] |= {"texts": {"graph": trace.digest(BEFORE)}}
    lines[1] |= {"texts": {"graph": trace.digest(AFTER)}}
    path = tmp_path / "matrix.html"
    write_page(combine(load([write("run.jsonl", lines, TEXTS)])), path)
    page = tab.open(path, "#cell=decomposition/inductor/cpu/norm.a@2.14.1")
    page.wait_for_selector("#panel .sides")
    assert "graph, after capture and here" in page.inner_text("#panel")
    assert page.get_attribute("#panel .sides", "data-differences") == "3"


def test_the_graph_is_drawn(page: Any) -> None:
    open_fusion(page)
    page.click("#panel .tools button:text-is('Draw before')")
    labels = page.eval_on_selector_all(
        "#panel svg.fx .node text:first-of-type", "all => all.map(one => one.textContent)"
    )
    assert sorted(labels) == sorted(["f32[8, 8]", "f32[8, 8]", "aten.add.Tensor", "aten.relu", "return"])
    assert page.eval_on_selector_all("#panel svg.fx .edge", "all => all.length") == 4


def test_code_is_highlighted(page: Any) -> None:
    open_fusion(page)
    box = "#panel pre[data-language=python]"
    found = {
        kind: page.eval_on_selector_all(f"{box} .t-{kind}", "all => all.map(one => one.textContent)")
        for kind in "kcsdnf"
    }
    assert {"import", "def", "return"} <= set(found["k"])
    assert found["f"] == ["kernel"]
    assert (found["c"], found["s"], found["d"], found["n"]) == (["# adds"], ["'a'"], ["@triton.jit"], ["1"])
    assert page.text_content(box) == TRITON


def test_the_page_is_one_file_with_its_evidence(write: Write, tmp_path: Path, tab: Tab) -> None:
    long = "x = 1\n" * 200_000
    lines = cells()
    lines[0] |= {"texts": {"code": trace.digest(long)}, "observation": {"long": ["x" * 10_000] * 100}}
    record = write("run.jsonl", lines, {**TEXTS, "long": long})
    alone = tmp_path / "alone"
    alone.mkdir()
    write_page(combine(load([record])), alone / "matrix.html")
    assert [file.name for file in alone.iterdir()] == ["matrix.html"]
    assert (alone / "matrix.html").stat().st_size < 300_000  # packed
    page = tab.open(alone / "matrix.html", "#cell=capture/eager/cpu/norm.a@2.14.1")
    page.wait_for_function("() => document.querySelector('#panel pre')?.textContent.length > 1000000")


def test_a_page_can_do_without_texts(write: Write, tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "matrix.html"
    write_page(combine(load([write("run.jsonl", cells(), TEXTS)])), path, texts=False)
    page = tab.open(path, "#cell=fusion/inductor/cpu/norm.a@2.14.1")
    page.wait_for_selector("#panel .evidence[aria-busy=false]")
    assert "add_relu" in page.inner_text("#panel") and "Not beside the record" in page.inner_text("#panel")


def test_a_text_that_is_not_beside_the_record_is_said(write: Write, tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "matrix.html"
    write_page(combine(load([write("run.jsonl", cells())])), path)
    page = tab.open(path, "#cell=fusion/inductor/cpu/norm.a@2.14.1")
    page.wait_for_function("() => document.getElementById('panel').textContent.includes('Not beside the record')")
    assert "3 texts are not beside the records" in page.text_content("#problems")


# ------------------------------------------------------------------------------------------ links and keys


def test_the_address_is_the_view(page: Any, chromium: Any) -> None:
    open_fusion(page)
    other = Tab(chromium)
    other.page.goto(page.url)
    other.page.wait_for_selector("#panel .evidence[aria-busy=false]")
    assert names(other.page) == names(page) == ["norm.a"]
    assert groups(other.page) == ["inductor"]
    assert other.page.input_value("#q") == "norm.a"
    assert other.page.inner_text("#opened-verdict") == "✗ fail"
    assert not other.faults
    other.context.close()


def test_an_address_that_means_nothing_is_harmless(page: Any) -> None:
    page.evaluate("location.hash = 'view=nonsense&stage=nope&cell=a/b&pair=x&%E0%A4%A'")
    page.wait_for_timeout(100)
    assert "Nothing here" in page.text_content("#body")


def test_keys(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("norm")
    assert names(page) == ["norm.a", "norm.b", "norm.c"]
    page.keyboard.press("Enter")  # from the filter into the matrix
    at = "document.querySelector('#at').closest('.row').firstChild.title"
    assert page.evaluate(at) == "norm.a"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(at) == "norm.b"
    for _ in range(14 + 3):  # past autodeploy and eager, to the fusion stage of inductor
        page.keyboard.press("ArrowRight")
    label = page.get_attribute("#at", "aria-label")
    assert label.startswith("norm.b, inductor cpu 2.14.1, fusion: fail")
    assert page.get_attribute("#grid", "aria-activedescendant") == "at"
    page.keyboard.press("Enter")
    assert page.inner_text("#opened-verdict") == "✗ fail"
    page.keyboard.press("ArrowLeft")  # the panel follows
    assert page.inner_text("#opened-verdict") == "✓ pass"
    page.keyboard.press("Escape")
    assert page.is_hidden("#panel")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    assert len(names(page)) == 5


# ------------------------------------------------------------------------------------------------ pictures


def test_time_is_a_waterfall(page: Any) -> None:
    page.click("[data-view=time]")
    label = page.get_attribute("svg.waterfall", "aria-label")
    assert label == "Time by stage: " + ", ".join(f"{stage} 100 ms" for stage in STAGES)
    bars = page.eval_on_selector_all(
        "svg.waterfall >> nth=0 >> .bar",
        "all => all.map(one => [Number(one.getAttribute('x')), Number(one.getAttribute('width'))])",
    )
    for (x, width), (after, _) in pairwise(bars):
        assert after == pytest.approx(x + width, abs=0.1)


def test_versions_are_plotted(write: Write, tmp_path: Path, tab: Tab) -> None:
    records = []
    for torch, kernels in (("2.9.1", 1), ("2.11.0", 1), ("2.15.0", 2)):
        lines = compile_of(
            "norm.a", "inductor", "cpu", fusion={"kernels": kernels}, postgrad={"matches": {"rmsnorm": 1}}
        )
        records.append(write(f"{torch}.jsonl", lines, torch=torch))
    path = tmp_path / "matrix.html"
    write_page(combine(load(records)), path)
    page = tab.open(path, "#view=matrix")
    assert page.inner_text("#head .group span") == "cpu · 2.15.0"  # the newest, unless asked
    choose(page, "version", "*")
    assert [
        re.sub("cpu · ", "", text) for text in page.locator("#head .group span:nth-of-type(1)").all_inner_texts()
    ] == [
        "2.9.1",
        "2.11.0",
        "2.15.0",
    ]
    page.click("[data-view=trends]")
    labels = page.eval_on_selector_all(".trend svg", "all => all.map(one => one.getAttribute('aria-label'))")
    assert labels[0] == "kernels: 2.9.1 1, 2.11.0 1, 2.15.0 2"
    assert labels[1] == "matches: 2.9.1 1, 2.11.0 1, 2.15.0 1"
    assert page.eval_on_selector_all(".trend svg:first-of-type .dot.changed", "all => all.length") >= 1


def test_flaky_cells_are_marked(write: Write, tmp_path: Path, tab: Tab) -> None:
    one = write("one.jsonl", [cell("runtime/inductor/cpu/norm.a", "pass")], started="2026-11-15T01")
    two = write("two.jsonl", [cell("runtime/inductor/cpu/norm.a", "fail")], started="2026-11-15T02")
    path = tmp_path / "matrix.html"
    write_page(combine(load([one, two])), path)
    page = tab.open(path)
    assert page.text_content(".c.flaky") == "✗"
    page.click(".c.flaky")
    assert "Flaky: pass, fail on the same version" in page.inner_text("#panel")
    assert "1 cell of the same version in both one.jsonl and two.jsonl" in page.text_content("#problems")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_signs_can_be_read_in_both_schemes(chromium: Any, write: Write, tmp_path: Path, scheme: str) -> None:
    """Contrast of each verdict's sign against its own ground, by the WCAG's formula."""
    words = [
        "pass",
        "fail",
        "fallback",
        "unsupported",
        "unavailable",
        "blocked",
        "xfail",
        "xpass",
        "error",
        "timeout",
        "novel",
    ]
    path = tmp_path / "matrix.html"
    write_page(
        combine(load([write("run.jsonl", [cell(f"runtime/inductor/cpu/v.{word}", word) for word in words])])), path
    )
    tab = Tab(chromium, color_scheme=scheme)
    page = tab.open(path)
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) == len(words)
    assert {name: round(ratio, 1) for name, ratio in ratios.items() if ratio < 4.2} == {}
    tab.context.close()
