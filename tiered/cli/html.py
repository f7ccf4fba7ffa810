"""The pages that `--html` writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tiered.support.errors import ModelError, TieredError, UsageError

if TYPE_CHECKING:
    from tiered.pipeline.instruments import Trace
    from tiered.pipeline.result import OptimizeResult


def check_html(path: str | None) -> None:
    """Check the file of --html before any work is done.

    Raises:
        UsageError: its suffix is another one: it could be a model.
        ModelError: it cannot be written.
    """
    if path is None:
        return
    if not path.endswith((".html", ".htm")):
        raise UsageError(f"--html writes a page, so its file ends in .html, not {path!r}")
    from tiered.support.pages.render import check_page

    check_page(path)


class RunPage:
    """The page of one run of `tiered optimize`; `result` is None if the run fails."""

    def __init__(self) -> None:
        self.result: OptimizeResult | None = None


@contextmanager
def run_page_for(
    path: str | None, trace: Trace | None, source: str, *, times: bool
) -> Iterator[RunPage]:
    """Write the page of a run at its end, also if it fails."""
    made = RunPage()
    if path is None or trace is None:
        yield made
        return
    from tiered.pipeline.instruments.run_page.page import run_page
    from tiered.support.pages.render import short, write_page

    title = f"tiered optimize {short(os.path.basename(source))}"
    try:
        yield made
    except TieredError as error:
        try:
            write_page(path, run_page(trace.spans, times=times, title=title, error=str(error)))
        except ModelError as late:
            error.add_note(str(late))
        raise
    write_page(path, run_page(trace.spans, made.result, times=times, title=title))
