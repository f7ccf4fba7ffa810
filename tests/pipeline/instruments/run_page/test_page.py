"""The page of a run, read without a browser."""

import gc
import os
from pathlib import Path
from typing import Any

import onnx
import pytest

import tiered
from tests.support.pages.reader import read
from tiered import Model, Sequential, Skip, Value, op, rewrite, var
from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.run_page import (
    page as page_module,
    pass_sections as passes_module,
    rewrites as rewrites_module,
)
from tiered.pipeline.instruments.run_page.page import run_page
from tiered.pipeline.optimize import optimize_model
from tiered.testing import parse

SMALL = """(float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}> {
    a = Identity(x)  b = Add(a, w)  r = Relu(b)  q = Relu(r)  y = Identity(q) }"""


def _traced(text: str = SMALL, **settings: Any) -> tuple[Trace, Any]:
    trace = Trace()
    return trace, optimize_model(parse(text), trace=trace, **settings)


def _states(data: dict[str, Any], items: list[list[int]]) -> list[tuple[int, str]]:
    """Return the kind and operator of each node of a diagram."""
    strings, states = data["strings"], data["states"]
    return [(item[0], strings[states[item[1]][1]]) for item in items if item[0] != 3]


def test_a_rewrite_has_its_nodes_with_neighbours_and_types() -> None:
    trace, result = _traced()
    data = read(run_page(trace.spans, result)).data
    strings = data["strings"]
    (first,) = [
        row
        for row in data["rewrites"]
        if strings[row[1]] == "eliminate_identity" and strings[row[4]] == "a"
    ]
    assert (2, "Identity") in _states(data, first[6])
    assert (1, "Add") in _states(data, first[7])
    assert (0, "Relu") in _states(data, first[7])
    types = {strings[int(value)]: strings[kind] for value, kind in data["types"].items()}
    assert types["x"] == "float[n,2]"
    assert types["w"] == "float[2] const"


def test_each_rewrite_says_how_it_was_proved() -> None:
    trace, result = _traced(certify=True)
    page = read(run_page(trace.spans, result))
    numbers = {str(row[0]) for row in page.data["rewrites"]}
    assert page.data["proofs"].keys() == numbers
    assert all(text.startswith("bit for bit") for text in page.data["proofs"].values())
    assert any("for all sizes" in text for text in page.data["proofs"].values())
    assert "Certificate" in page.text
    assert f"certified: {result.certify.findings}" in page.text


def test_a_run_without_a_certificate_says_nothing_of_one() -> None:
    trace, result = _traced()
    page = read(run_page(trace.spans, result))
    assert page.data["proofs"] == {}
    assert "Certificate" not in page.text


def test_a_side_without_nodes_shows_the_neighbours() -> None:
    trace, _ = _traced("(float x) => (float y) { c = Constant<value_float=1.0>()  y = Add(x, c) }")
    data = read(trace.to_html()).data
    row = next(r for r in data["rewrites"] if "extract_constant" in data["strings"][r[1]])
    assert _states(data, row[6]) == [(2, "Constant"), (0, "Add")]
    assert _states(data, row[7]) == [(0, "Add")]


def test_the_page_has_passes_with_laws_skipped_ones_with_reasons_and_what_was_declined() -> None:
    trace, result = _traced(opt_level=1, disabled=["fuse_gelu"])
    text = read(run_page(trace.spans, result)).text
    assert "Identity(x) => x" in text.replace("\u00a0", " ").replace("  ", " ")
    assert "disabled" in text
    assert "opt_level" in text or "level" in text
    for heading in ("Summary", "Timeline", "Passes", "Rewrites", "Skipped passes"):
        assert heading in text


def test_lines_of_a_description_are_paragraphs() -> None:
    @rewrite(op.Identity(var.x), opt_level=0)
    def drop(graph: Any, x: Value) -> Value:
        """Drop it, as
        nobody needs it.

        Two lines
        of one paragraph:
          a list.

        Args:
            x: no part.
        """
        return x

    trace = Trace()
    optimize_model(parse(SMALL), passes=Sequential([drop]), trace=trace)
    reason = read(trace.to_html()).data["reasons"]["drop"]
    assert reason == "Drop it, as nobody needs it.\n\nTwo lines of one paragraph:\n  a list."


def test_declined_nodes_are_listed_by_reason() -> None:
    @rewrite(op.Relu(var.x), opt_level=0)
    def declines(graph: Any, x: Value) -> Skip:
        """Decline."""
        return Skip("the input is {}", x.name)

    trace = Trace()
    optimize_model(parse(SMALL), passes=Sequential([declines]), trace=trace)
    text = read(trace.to_html()).text
    assert "2 Relu" in text
    assert "the input is b" in text
    assert "the input is r" in text


def test_nodes_that_no_rewrite_touched_are_found_too() -> None:
    trace, result = _traced("(float x) => (float y) { a = Abs(x)  b = Neg(a)  y = Exp(b) }")
    data = read(run_page(trace.spans, result)).data
    assert data["rewrites"] == []
    assert [data["strings"][node[1]] for node in data["nodes"]] == ["Abs", "Neg", "Exp"]


def test_a_failed_pass_and_what_it_undid_are_shown() -> None:
    @rewrite(op.Relu(var.x), opt_level=0)
    def breaks(graph: Any, x: Value) -> Value:
        """Break."""
        if len(graph.nodes_of("Relu")) == 1:
            raise RuntimeError("broken in " + os.path.join(os.getcwd(), "here.py"))
        return x

    trace = Trace()
    optimize_model(parse(SMALL), passes=Sequential([breaks]), trace=trace, on_error="skip")
    page = read(trace.to_html())
    assert "failed" in page.text
    assert os.getcwd() not in page.text
    assert [row[5] for row in page.data["rewrites"]] == [1]


def test_the_same_run_makes_the_same_bytes_without_times() -> None:
    pages = []
    for times in (False, False, True):
        trace, result = _traced(opt_level=3)
        pages.append(run_page(trace.spans, result, times=times))
    assert pages[0] == pages[1]
    assert " ms" not in read(pages[0]).text
    assert " ms" in read(pages[2]).text


def test_no_folder_of_this_machine_is_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse(SMALL), path)
    trace = Trace()
    result = optimize_model(path, trace=trace, opt_level=3)
    html = run_page(trace.spans, result)
    assert str(tmp_path) not in html
    assert os.path.dirname(rewrites_module.__file__) not in html
    assert "model.onnx" in html


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "n" * 10_000,
             "\u202enode\u2028", "節点 \U0001f600", "a&b\"c'd", "{{ 7*7 }}"],
)  # fmt: skip
def test_hostile_names_are_text(name: str) -> None:
    proto = parse(SMALL)
    proto.graph.name = name
    proto.graph.node[0].name = name
    proto.graph.node[1].name = name + "2"
    trace = Trace()
    result = optimize_model(proto, trace=trace, passes=Sequential(["eliminate_identity"]))
    html = run_page(trace.spans, result)
    page = read(html)
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    assert len(html) < 400_000
    start = name[:4]
    assert any(start in text or "\\u" in text for text in page.data["strings"])


def large_model(nodes: int) -> onnx.ModelProto:
    """Return a chain in which three of four nodes are removed."""
    lines = []
    last = "x"
    for number in range(nodes):
        name = f"encoder_layer_{number // 40}_attention_output_{number}"
        lines.append(f"{name} = {'Sin' if number % 4 == 0 else 'Identity'}({last})")
        last = name
    lines.append(f"y = Sin({last})")
    return parse(f"(float[batch,128,768] x) => (float[batch,128,768] y) {{ {'  '.join(lines)} }}")


def test_a_large_run_stays_below_five_megabytes() -> None:
    trace = Trace()
    result = optimize_model(large_model(4000), trace=trace)
    html = run_page(trace.spans, result)
    data = read(html).data
    assert len(data["rewrites"]) == data["total"] == len(trace.rewrites) >= 3000
    assert len(html.encode()) < 5_000_000


def test_the_transposes_of_the_result_have_bytes_and_what_blocks_them() -> None:
    trace, result = _traced("(float[2,3] x) => (float[3,2] y) { y = Transpose(x) }")
    page = read(run_page(trace.spans, result))
    assert "Transposes that stay" in page.text
    assert "graph input 'x'" in page.text
    assert "graph output 'y'" in page.text
    trace, result = _traced()
    assert "Transposes that stay" not in read(run_page(trace.spans, result)).text


def test_one_node_is_no_plural() -> None:
    @rewrite(op.Relu(var.x), opt_level=0)
    def declines(graph: Any, x: Value) -> Skip:
        """Decline."""
        return Skip("no")

    trace = Trace()
    text = "(float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }"
    passes = Sequential([declines, "eliminate_identity"])
    optimize_model(parse(text), passes=passes, trace=trace)
    text = read(trace.to_html()).text
    assert "1 rewrite -1 node " in text.replace("\n", " ")
    assert "1 node " in text.replace("\n", " ")
    assert "1 nodes" not in text.replace("nodes before", "")


def test_the_collector_waits_until_a_page_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, result = _traced()
    was_enabled = []

    def observed(*args: Any) -> dict[str, Any]:
        was_enabled.append(gc.isenabled())
        return rewrites_module.rewrites_data(*args)

    monkeypatch.setattr(page_module, "rewrites_data", observed)
    run_page(trace.spans, result)
    assert was_enabled == [False]
    assert gc.isenabled()


def test_a_larger_run_shows_the_first_part_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites_module, "BUDGET", 20_000)
    trace = Trace()
    result = optimize_model(large_model(400), trace=trace)
    data = read(run_page(trace.spans, result)).data
    assert 0 < len(data["rewrites"]) < data["total"] == len(trace.rewrites)


def test_a_trace_without_passes_is_a_page() -> None:
    assert "no pass ran" in read(Trace().to_html()).text


def test_surroundings_do_not_keep_the_model_alive() -> None:
    trace, _ = _traced()
    around = [rewrite.around for rewrite in trace.rewrites]
    assert any(each.nodes for each in around)
    assert not any(isinstance(part, Model) for each in around for part in each.values.values())


def test_the_summary_has_versions_and_one_unit_for_bytes() -> None:
    trace, result = _traced()
    text = read(run_page(trace.spans, result)).text
    assert f"tiered {tiered.__version__}, onnx {onnx.__version__}, onnxruntime " in text
    assert f"bytes {result.before.nbytes:,} {result.after.nbytes:,}" in text
    assert "MiB" not in text


def test_rounds_have_the_names_of_their_groups() -> None:
    trace, result = _traced(opt_level=3)
    page = read(run_page(trace.spans, result))
    text = " ".join(page.text.split())
    assert "Groups that run until they change nothing" in text
    names = [run.group for run in passes_module.runs_of(trace.spans) if run.round]
    groups = passes_module.groups_of(passes_module.runs_of(trace.spans))
    assert list(groups) == list(dict.fromkeys(names))
    assert list(groups.values())[:2] == ["A", "B"]
    assert " A1 " in text


def test_there_are_names_for_any_number_of_groups() -> None:
    assert [passes_module.letters(place) for place in (0, 25, 26, 701, 702)] == [
        "A", "Z", "AA", "ZZ", "AAA"
    ]  # fmt: skip
