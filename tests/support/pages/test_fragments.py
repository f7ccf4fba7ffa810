"""What a notebook shows of a model, a trace, a result and a comparison."""

from html.parser import HTMLParser

import numpy as np

from tiered import Model
from tiered.pipeline.instruments import Trace
from tiered.pipeline.optimize import optimize_model
from tiered.runtime.compare.outputs import compare
from tiered.testing import parse

TEXT = "(float[n] x) => (float[n] y) { a = Identity(x)  y = Relu(a) }"
HOSTILE = "<script>alert(1)</script>"


class _Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def _shown(subject: object) -> str:
    html = subject._repr_html_()  # type: ignore[attr-defined]  # the hook of notebooks
    found = _Tags(html)
    assert found.tags <= {"div", "p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    return found.text


def test_a_model_shows_its_interface_and_operators() -> None:
    proto = parse(TEXT)
    proto.graph.node[0].domain = HOSTILE
    text = _shown(Model.from_proto(proto))
    assert "float[n]" in text
    assert "Relu" in text
    assert f"{HOSTILE}::Identity" in text


def test_a_closed_model_says_so() -> None:
    model = Model.from_proto(parse(TEXT))
    model.close()
    assert "closed" in _shown(model)


def test_a_trace_and_a_result_show_what_changed() -> None:
    trace = Trace()
    result = optimize_model(parse(TEXT), trace=trace)
    assert "eliminate_identity" in _shown(trace)
    shown = _shown(result)
    assert "Identity" in shown
    assert "-1 (-50%)" in shown


def test_a_comparison_shows_each_output() -> None:
    one, other = np.array([1, 2], np.float32), np.array([1, 3], np.float32)
    assert "The outputs agree" in _shown(compare({HOSTILE: one}, {HOSTILE: one}))
    shown = _shown(compare({HOSTILE: one}, {HOSTILE: other}))
    assert "The outputs differ" in shown
    assert HOSTILE in shown
