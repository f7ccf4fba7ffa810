"""The built site in a real browser: no error, no host asked, axe-core's rules, the search."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.site.examples import ROOT
from tests.support.pages.browser import check_page, launched, opened, why_not

SITE = Path(os.environ.get("TIERED_SITE", ROOT / "build" / "docs" / "html"))
WHY = why_not() or ("" if SITE.is_dir() else "the site is not built: make docs")
PAGES = [
    "index.html",
    "tutorials/first_optimisation.html",
    "passes/index.html",
    "passes/fuse_bn_into_conv.html",
    "reference/tiered.testing.html",
]
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (375, True)])
def test_a_page_holds(browser: Any, name: str, width: int, dark: bool) -> None:
    page = opened(browser, SITE / name, width=width, dark=dark)
    check_page(page)
    page.close()


def test_the_nodes_before_and_after_are_drawn(browser: Any) -> None:
    page = opened(browser, SITE / "passes" / "fuse_bn_into_conv.html")
    drawn = page.locator(".tiered-picture svg")
    assert drawn.count() == 2
    assert "BatchNormalization" in drawn.first.text_content()
    assert "BatchNormalization" not in drawn.last.text_content()
    page.close()


def test_the_search_finds_a_pass(browser: Any) -> None:
    page = opened(browser, SITE / "search.html")
    page.goto((SITE / "search.html").as_uri() + "?q=fuse_bn_into_conv")
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").all_text_contents()
    assert "fuse_bn_into_conv" in found
    page.close()


WRAPPERS = "[...document.querySelectorAll('.tiered-facts .table-wrapper')]"
NAMES = "[...document.querySelectorAll('.tiered-facts a')].map(a => a.getClientRects().length)"


def test_a_name_of_a_pass_is_on_one_line_of_a_phone(browser: Any) -> None:
    page = opened(browser, SITE / "passes" / "fold_constant.html", width=375)
    lines = page.evaluate(NAMES)
    assert lines
    assert set(lines) == {1}
    assert page.evaluate(f"{WRAPPERS}.every(e => e.scrollWidth <= e.clientWidth)")
    page.close()
