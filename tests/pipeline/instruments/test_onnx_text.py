"""Models and nodes as text, without the numbers of large weights."""

import pytest

from tests.small import made_by, parsed
from tiered.pipeline.instruments import onnx_text as module
from tiered.pipeline.instruments.onnx_text import model_text, node_text

TEXT = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g
    (float[3] x, bool p) => (float[3] y) <float[3] w = {1,2,3}, float[2] s = {1,2}> {
    a = Add(x, w)
    c = Constant<value = float[1,3] {1,2,3}>()
    y = If(p) <then_branch = t () => (float[3] u) <float[3] v = {1,2,3}> { u = Add(a, v) },
               else_branch = e () => (float[3] q) { q = local.F(a) }> }
    <domain: "local", opset_import: ["" : 21]> F (m) => (n) {
        k = Constant<value = float[3] {4,5,6}>()  n = Add(m, k) }"""


def test_large_constants_are_shown_by_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 2)
    assert " ".join(model_text(parsed(TEXT)).split()) == (
        '< ir_version: 10, opset_import: ["" : 21, "local" : 1] > g (float[3] x, bool p) => '
        "(float[3] y) <float[2] s = {1,2}, float[3] w> { a = Add (x, w) "
        'c = Constant <value: string = "float[1,3] ..."> () y = If (p) <then_branch: graph = t () '
        "=> (float[3] u) <float[3] v> { u = Add (a, v) }, else_branch: graph = e () => "
        '(float[3] q) { q = local.F (a) }> } < domain: "local", opset_import: ["" : 21] > F (m) => '
        '(n) { k = Constant <value: string = "float[3] ..."> () n = Add (m, k) }'
    )


def test_sixteen_elements_are_few() -> None:
    for count in (16, 17):
        numbers = ",".join(["1"] * count)
        call = f"Constant<value=float[{count}] {{{numbers}}}>()"
        model = parsed(f"(float x) => (float y) {{ y = {call} }}")
        assert ("..." in node_text(made_by(model, "y"))) is (count == 17)
