"""Whole pages of runs, as they read."""

import html
import re
from pathlib import Path
from typing import Any

from tests.recorded import assert_values
from tiered import Sequential, Skip, Value, op, rewrite, var
from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.run_page.page import run_page
from tiered.pipeline.optimize import optimize_model
from tiered.testing import parse

SMALL = """(float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}> {
    a = Identity(x)  b = Add(a, w)  r = Relu(b)  q = Relu(r)  y = Identity(q) }"""

_HIDDEN = re.compile(r"<(script|style).*?</\1>", re.DOTALL)
_LINES = re.compile(r"</(?:tr|h\d|p|caption|summary|li|div|figcaption|title|dd)>")
_CELLS = re.compile(r"</(?:t[dh]|dt)>")
_UNSTABLE = re.compile(r"(?<=(?:tiered|. onnx|untime) )[\d.]+\d|(?<=\.py:)\d+")
"""Versions, and numbers of lines."""


def _lines(page: str) -> list[str]:
    """Return what a page shows: each row, heading and paragraph on a line."""
    rows = [_CELLS.split(row) for row in _LINES.split(_HIDDEN.sub("", page))]
    plain = [[html.unescape(re.sub(r"<[^>]+>", "", cell)).split() for cell in row] for row in rows]
    found = (" | ".join(map(" ".join, row)).strip(" |") for row in plain)
    return [_UNSTABLE.sub("_", line) for line in found if line]


@rewrite(op.Relu(var.x), opt_level=0)
def declines(graph: Any, x: Value) -> Skip:
    """Decline."""
    return Skip("the input is {}", x.name)


@rewrite(op.Relu(var.x), opt_level=0)
def raises(graph: Any, x: Value) -> Value:
    """Fail."""
    raise RuntimeError(f"broken in {Path.cwd() / 'here.py'}")


@rewrite(op.Relu(var.x), opt_level=0)
def drops_relu(graph: Any, x: Value) -> Value:
    """Change what the model computes."""
    return x


def shown(
    *passes: Any, text: str = SMALL, is_result: bool = True, page: Any = None, **settings: Any
) -> None:
    """Print the page of a run."""
    trace, error = Trace(), ""
    settings["passes"] = Sequential(list(passes))
    try:
        result = optimize_model(parse(text), trace=trace, **settings)
    except Exception as raised:  # noqa: BLE001 - the page says it
        result, error = None, f"{type(raised).__name__}: {raised}".partition("\n")[0]
    given = result if is_result else None
    made = run_page(trace.spans, given, times=False, error=error, **(page or {}))
    for line in _lines(made):
        print(line)


def test_pages_are_recorded() -> None:
    names = {
        "shown": shown, "declines": declines, "raises": raises, "drops_relu": drops_relu,
    }  # fmt: skip
    assert_values(__file__, names)
