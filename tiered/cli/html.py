"""The pages that `--html` writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tiered.cli.line.typed import typed_line
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
    """The page of one run; `result` is None if the run fails."""

    def __init__(self) -> None:
        self.result: OptimizeResult | None = None


@contextmanager
def run_page_for(
    path: str | None,
    trace: Trace | None,
    source: str,
    *,
    times: bool,
    command: str = "optimize",
    target: str | None = None,
    edits: Sequence[str] = (),
) -> Iterator[RunPage]:
    """Write the page of a run at its end, also if it fails.

    Args:
        path: the file of the page; None for none.
        trace: what records the run.
        source: the file that is read.
        times: whether times are on the page.
        command: the command, for the heading.
        target: the file that is written; None for none.
        edits: those of the user.
    """
    made = RunPage()
    if path is None or trace is None:
        yield made
        return
    from tiered.pipeline.instruments.run_page.page import run_page
    from tiered.support.pages.render import short, write_page

    title = f"tiered {command} {short(os.path.basename(source))}"
    facts = {
        "command": typed_line(without="--html"),
        "written to": "nothing" if target is None else target,
        "edits of the pipeline": "; ".join(edits),
    }
    try:
        yield made
    except TieredError as error:
        try:
            failed = run_page(trace.spans, times=times, title=title, error=str(error), facts=facts)
            write_page(path, failed)
        except ModelError as late:
            error.add_note(str(late))
        raise
    write_page(path, run_page(trace.spans, made.result, times=times, title=title, facts=facts))
