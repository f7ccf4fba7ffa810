"""The pages in a real browser; skipped where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.pipeline.instruments.run_page.test_page import SMALL, large_model
from tests.support.pages.browser import check_page, launched, opened, why_not
from tiered.extensions.debug import compare_models, layer_precision_compare
from tiered.extensions.debug.comparison_page import comparison_page
from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.run_page.page import run_page
from tiered.pipeline.optimize import optimize_model
from tiered.support.pages.render import page as page_of
from tiered.support.pages.sections import Table, tables
from tiered.testing import parse

THEMES = [(1200, False), (1200, True), (375, False), (375, True)]
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = Trace()
    result = optimize_model(parse(SMALL), trace=trace, opt_level=3)
    path = tmp_path_factory.mktemp("pages") / "run.html"
    path.write_text(run_page(trace.spans, result), encoding="utf-8")
    return path


def _opened(browser: Any, path: Path, *, width: int = 1200, dark: bool = False) -> Any:
    """Open a page, which must need no other file."""
    page = opened(browser, path, width=width, dark=dark)
    assert page.requests == [path.as_uri()]
    return page


@pytest.mark.parametrize(("width", "dark"), THEMES)
def test_a_click_shows_the_diagrams_and_the_history(
    browser: Any, run_file: Path, width: int, dark: bool
) -> None:
    page = _opened(browser, run_file, width=width, dark=dark)
    page.locator("#rewrites-list button.row").first.click()
    detail = page.locator("#rewrites-list .detail")
    assert detail.locator("svg").count() == 2
    assert "float[n,2]" in detail.locator("svg").first.text_content()
    detail.locator(".chips button").first.click()
    assert page.locator("#node").is_visible()
    assert "removed by" in page.locator("#node").text_content()
    check_page(page)
    page.locator("#node").press("Escape")
    assert not page.locator("#node").is_visible()
    page.close()


def test_the_search_finds_nodes_operators_and_passes(browser: Any, run_file: Path) -> None:
    page = _opened(browser, run_file)
    rows = page.locator("#rewrites-list > li")
    everything = rows.count()
    page.keyboard.press("/")
    page.keyboard.type("eliminate_identity")
    page.keyboard.press("Enter")
    assert 0 < rows.count() < everything
    assert all("eliminate_identity" in text for text in rows.all_text_contents())
    page.fill("#search", "relu q")
    page.keyboard.press("Enter")
    assert page.locator("#nodes-list > li").count() == 1  # under its name before the run
    page.fill("#search", "nothing of this name")
    page.keyboard.press("Enter")
    assert rows.count() == 0
    assert page.locator("#found").text_content().startswith("0 rewrites, 0 nodes")
    skipped = page.locator("#skipped-passes li", has_text="float_to_half")
    assert not skipped.is_visible()
    page.fill("#search", "float_to_half")
    page.keyboard.press("Enter")
    assert skipped.is_visible()
    assert "opt-in" in page.locator("#skipped-passes details[open] summary").text_content()
    check_page(page)
    page.close()


def test_an_edge_passes_beside_the_nodes_between(browser: Any, tmp_path: Path) -> None:
    text = """(float[2] x, float[2] s) => (float[2] y) {
        e = Exp(x)  i = Identity(e)  n = Neg(i)  y = Add(n, e) }"""
    trace = Trace()
    result = optimize_model(parse(text), trace=trace)
    path = tmp_path / "run.html"
    path.write_text(run_page(trace.spans, result), encoding="utf-8")
    page = _opened(browser, path)
    page.locator("#rewrites-list button.row", has_text="eliminate_identity").first.click()
    assert page.locator(".view svg").count() == 2
    inside = page.evaluate("""() => [...document.querySelectorAll(".view svg")].flatMap((svg) => {
        const boxes = [...svg.querySelectorAll("rect")].map((rect) => rect.getBBox());
        return [...svg.querySelectorAll("path.edge")].flatMap((edge) => {
            const length = edge.getTotalLength();
            const shares = [...Array(40).keys()].map((n) => n / 39);
            const points = shares.map((share) => edge.getPointAtLength(length * share));
            return points.filter((at) => boxes.some((box) =>
                at.x > box.x + 1 && at.x < box.x + box.width - 1 &&
                at.y > box.y + 1 && at.y < box.y + box.height - 1));
        });
    }).length""")
    assert inside == 0
    check_page(page)
    page.close()


def test_many_rewrites_of_a_pass_are_a_group_that_opens(browser: Any, tmp_path: Path) -> None:
    chain = "  ".join(f"a{n + 1} = Identity(a{n})" for n in range(60))
    trace = Trace()
    model = parse(f"(float a0) => (float y) {{ {chain}  y = Abs(a60) }}")
    result = optimize_model(model, trace=trace)
    path = tmp_path / "run.html"
    path.write_text(run_page(trace.spans, result), encoding="utf-8")
    page = _opened(browser, path)
    group = page.locator("#rewrites-list > li", has_text="eliminate_identity").first
    if group.locator("ol").count() == 0:
        group.locator("button.row").first.click()
    assert group.locator("ol > li").count() == 50
    page.fill("#search", "a57")
    page.keyboard.press("Enter")
    page.locator("#nodes-list button", has_text="a57").click()
    page.locator("#node-body button", has_text="eliminate_identity").first.click()
    assert page.locator("#rewrites-list .detail svg").count() == 2
    check_page(page)
    page.close()


@pytest.mark.parametrize("width", [1200, 375])
def test_a_long_table_scrolls_in_its_box(browser: Any, tmp_path: Path, width: int) -> None:
    name = "/model/encoder/layer.0/attention/self/output/dense/LayerNormalization"
    rows = [(f"{name}_{n}", n, "64.0 KiB", f"blocked by {name}, its axes") for n in range(300)]
    table = Table("All of them", ("node", "place", "bytes", "reason"), rows)
    path = tmp_path / "table.html"
    path.write_text(page_of("A table", [tables("Nodes", table)]), encoding="utf-8")
    page = _opened(browser, path, width=width)
    assert page.evaluate("document.documentElement.scrollHeight") < 1200
    if width == 1200:  # nothing is cut on the right
        box = page.locator(".scroll").bounding_box()
        assert page.locator("table").bounding_box()["width"] <= box["width"]
    lines = """cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length;
    }"""
    assert page.locator("td.number", has_text="64.0 KiB").first.evaluate(lines) == 1
    assert page.locator("th.long[scope=row]").first.evaluate(lines) > 1
    check_page(page)
    page.close()


def test_the_switch_changes_the_theme(browser: Any, run_file: Path) -> None:
    page = _opened(browser, run_file)
    color = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(color)
    page.click("#theme")
    assert page.evaluate(color) != light
    page.click("#theme")
    assert page.evaluate(color) == light
    page.close()


def test_hostile_names_run_nothing(browser: Any, tmp_path: Path) -> None:
    proto = parse(SMALL)
    for node in proto.graph.node:
        node.name = f"</script><img src=x onerror=alert(1)><script>alert({node.op_type!r})</script>"
    trace = Trace()
    result = optimize_model(proto, trace=trace)
    path = tmp_path / "hostile.html"
    path.write_text(run_page(trace.spans, result), encoding="utf-8")
    page = _opened(browser, path)
    page.on("dialog", lambda dialog: page.said.append("alert"))
    for row in page.locator("#rewrites-list button.row").all():
        row.click()
    page.locator(".chips button").first.click()
    assert page.locator("img").count() == 0
    assert "<img src=x" in page.locator("#node-title").text_content()
    check_page(page)
    page.close()


def test_a_large_page_opens_in_two_seconds(browser: Any, tmp_path: Path) -> None:
    trace = Trace()
    result = optimize_model(large_model(4000), trace=trace)
    path = tmp_path / "large.html"
    path.write_text(run_page(trace.spans, result), encoding="utf-8")
    page = _opened(browser, path)
    timing = "performance.getEntriesByType('navigation')[0].loadEventEnd"
    page.wait_for_function(f"{timing} > 0")
    assert page.evaluate(timing) < 2000
    group = page.locator("#rewrites-list > li").first
    assert group.locator("ol > li").count() == 50
    group.get_by_text("Show more").click()
    assert group.locator("ol > li").count() == 100
    check_page(page)
    page.close()


@pytest.mark.parametrize("width", [1200, 375])
def test_the_chart_of_layers_marks_the_first(browser: Any, tmp_path: Path, width: int) -> None:
    text = "(float[4] x) => (float[4] y) {{ a = Exp(x)  b = LeakyRelu<alpha={}>(a)  y = Tanh(b) }}"
    files = [tmp_path / name for name in ("a.onnx", "b.onnx")]
    for path, slope in zip(files, ("0.1", "-0.4"), strict=True):
        onnx.save(parse(text.format(slope).replace("Exp", "Neg")), path)
    first, second = map(str, files)
    layers = layer_precision_compare(first, second, every=True)
    path = tmp_path / "verify.html"
    html = comparison_page(first, second, compare_models(first, second), layers)
    path.write_text(html, encoding="utf-8")
    page = _opened(browser, path, width=width)
    assert page.locator("circle.first").count() == 1
    check_page(page)
    page.close()


@pytest.mark.parametrize(("width", "dark"), THEMES)
def test_a_run_shows_declined_nodes_and_what_blocks_transposes(
    browser: Any, tmp_path: Path, width: int, dark: bool
) -> None:
    trace = Trace()
    text = "(float[2,3] x) => (float[3,2] y) { a = Exp(x)  y = Transpose(a) }"
    result = optimize_model(parse(text), trace=trace, opt_level=3)
    path = tmp_path / "run.html"
    path.write_text(run_page(trace.spans, result), encoding="utf-8")
    page = _opened(browser, path, width=width, dark=dark)
    declined = page.locator("#declined-nodes li.declined", has_text="eliminate_nop_transpose")
    declined.locator("summary").click()
    assert "1 Transpose" in declined.inner_text()
    assert "graph input 'x'" in page.locator("#transposes-that-stay").inner_text()
    check_page(page)
    page.close()
