"""Open a model in Netron (the extra tiered[view]), or what changed between two on one page.

Examples:
    tiered view in.onnx
    tiered view in.onnx out.onnx
"""

from __future__ import annotations

import importlib
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from tiered.cli.files import check_input
from tiered.cli.output.terminal import Progress, printable, results
from tiered.support.errors import UsageError


def view(model: str, after: str | None = None, /, *, browser: bool = True) -> None:
    """Serve a model in Netron until it is interrupted, or open the page of two.

    Args:
        model: The ONNX file to read.
        after: A second one: the page of `tiered diff` shows what differs, side by side.
        browser: Open the browser; else only print the address.

    Raises:
        ModelError: a file cannot be read.
        UsageError: Netron is needed, but is not installed.
    """
    check_input(model)
    if after is not None:
        _view_both(model, after, browse=browser)
        return
    netron = _netron()
    address = netron.start(model, browse=browser)
    results().print(
        printable(f"{model}: http://{address[0]}:{address[1]} (Ctrl+C ends)"), soft_wrap=True
    )
    netron.wait()


def _view_both(model: str, after: str, *, browse: bool) -> None:
    """Write the page of `tiered diff` to the folder for temporary files, and open it."""
    check_input(after)
    with Progress() as progress:
        progress.say(f"reading {printable(model)} and {printable(after)}")
        from tiered.extensions.differences.difference_page import difference_page
        from tiered.extensions.differences.model_diff import diff
        from tiered.support.pages.render import write_page

        page = difference_page(diff(model, after))
    path = Path(tempfile.mkdtemp(prefix="tiered-view-"), "diff.html")
    write_page(str(path), page)
    results().print(printable(f"{model} and {after}: {path.as_uri()}"), soft_wrap=True)
    if browse:
        webbrowser.open(path.as_uri())


def _netron() -> Any:
    """Return the module of Netron.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module("netron")
    except ImportError as error:
        raise UsageError(
            "tiered view MODEL opens Netron, which is not installed: pip install 'tiered[view]'; "
            "tiered view A B needs nothing more"
        ) from error
