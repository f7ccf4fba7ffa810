"""Chromium of the system, driven by playwright; what every page holds in it.

AXE_CORE names the `axe.min.js` of axe-core; without it, its rules are not checked.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = os.environ.get("AXE_CORE")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def why_not() -> str:
    """Return why the tests in a browser are skipped; an empty string if they run."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install '.[browser]'"
    if BROWSER is None:
        return "chromium is not installed: apt-get install chromium"
    return ""


@contextmanager
def launched() -> Iterator[Any]:
    """Start a browser with a new profile, and end it."""
    playwright = importlib.import_module("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Any, path: Path, *, width: int = 1200, dark: bool = False) -> Any:
    """Open a page from its file; what the console says goes to `page.said`."""
    page = browser.new_page(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        bypass_csp=True,
    )
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("requestfailed", lambda request: page.said.append(f"failed: {request.url}"))
    page.requests = []
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(path.as_uri())
    return page


def check_page(page: Any) -> None:
    """Check what holds for each page: nothing said, no host asked, no scrolling aside, axe."""
    assert page.said == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    wide, visible = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= visible
    if AXE is not None:
        page.evaluate(Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found["violations"]] == []
