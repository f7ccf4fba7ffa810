import pytest

import tiered
from tiered import get_pass
from tiered.testing import parse

PASS = "model_overview"
TEXT = "(float[N,2] x) => (float[N,2] y) <float[2] w = {1,2}> { h = Add(x, w) y = Relu(h) }"


def test_the_overview_is_printed_and_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    given = parse(TEXT)
    assert get_pass(PASS)(given) == given
    said = capsys.readouterr().err
    assert "input x: float[N,2]\noutput y: float[N,2]\n2 nodes: 1 Add, 1 Relu\n" in said
    assert "2 parameters" in said


def test_text_prints_the_nodes_under_a_header(capsys: pytest.CaptureFixture[str]) -> None:
    tiered.optimize(parse(TEXT), passes="PrintIR{text=true,header='after all'}")
    said = capsys.readouterr().err
    assert said.startswith("after all\n")
    assert "h = Add (x, w)" in said


def test_functions_defaults_and_unknown_types_are_in_the_overview(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1, "d" : 1]> '
        "g (float[2] x, float[2] w = {1,2}) => (float[2] y) { a = local.f(x) y = d.Own(a, w) } "
        '<domain: "local", opset_import: ["" : 21]> f (a) => (b) { b = Relu(a) }'
    )
    get_pass(PASS)(parse(text))
    said = capsys.readouterr().err
    assert "opsets ai.onnx 21, local 1, d 1" in said
    assert "input w: float[2] with a default" in said
    assert "3 nodes: 1 Relu, 1 d::Own, 1 local::f" in said
    assert "functions f" in said
