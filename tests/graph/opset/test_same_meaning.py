"""`Model.set_opset` converts the nodes of one graph, or refuses the version."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from tests.small import content
from tiered import Model
from tiered.support.errors import ModelError


def model(opset: int, text: str) -> Model:
    header = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]> '
    return Model.from_proto(parser.parse_model(header + text))


X = "g (float[2,3,4] x) => (float[N,M,K] y) "

REFUSED = {
    "Dropout of opset 6": (6, 13, X + "{ y = Dropout(x) }", "trains without is_test"),
    "Clip has operands": (13, 6, "g (float[2] x, float m) => (float[2] y) { y = Clip(x, m) }",
                          "constant min before opset 11"),
    "Gelu is unknown": (20, 19, X + "{ y = Gelu(x) }", "opset 19 has no Gelu"),
    "Mish was": (9, 18, X + "{ y = Mish(x) }", "unknown to opset 9"),
    "a dtype is too new": (
        13, 12, "g (bfloat16[2] x) => (bfloat16[2] y) { y = Add(x, x) }", "takes no .*bfloat16"
    ),
    "in a body": (
        11, 10,
        "g (bool c, float[2,3] x, float m) => (float[2,3] y) { y = If (c) <"
        "then_branch = t () => (float[2,3] u) { u = Clip(x, m) }, "
        "else_branch = e () => (float[2,3] v) { v = Neg(x) }> }",
        "node 'u' .Clip.",
    ),
    "no import": (13, None, X + "{ y = Relu(x) }", "drop the import .* node 'y' .Relu. uses it"),
    "many": (
        9, None, X + "{ a = Relu(x) b = Relu(a) c = Relu(b) d = Relu(c) e = Relu(d) f = Relu(e) "
        "y = Relu(f) }", "and 2 more; convert",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_version_at_which_a_node_is_not_the_same_is_refused(name: str) -> None:
    before, after, text, match = REFUSED[name]
    made = model(before, text)
    proto = content(made)
    with pytest.raises(ModelError, match=match):
        made.set_opset("", after)
    assert content(made) == proto


TAKEN = {
    "Relu": (13, 14, X + "{ y = Relu(x) }"),
    "Clip of opset 6": (6, 13, X + "{ y = Clip <min = 0.0> (x) }"),
    "Clip has none": (11, 13, X + "{ y = Clip(x) }"),
    "Softmax of the last": (13, 21, X + "{ y = Softmax(x) }"),
    "nothing knows it": (13, 21, X + "{ y = Nobody(x) }"),
    "nothing uses it": (13, None, X + "{ y = com.microsoft.Gelu(x) }"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_version_at_which_all_nodes_are_the_same_is_written(name: str) -> None:
    before, after, text = TAKEN[name]
    made = model(before, text)
    proto = content(made)
    made.set_opset("", after)
    assert made.opset("") == (after or 0)
    made.undo_to(0)
    assert content(made) == proto


def test_a_version_converts_the_nodes_of_one_graph() -> None:
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 9, "own" : 1]>
        g (float[2] x) => (float[N] y) { h = own.f(x)  y = ReduceSum <axes = [0]> (h) }
        <domain: "own", opset_import: ["" : 9]> f (a) => (b) { b = ReduceSum <axes = [0]> (a) }"""
    )
    made = Model.from_proto(proto)
    before = content(made)
    function = made.functions[0]
    made.set_opset("own", 2)
    made.set_opset("", 13)
    assert (made.opset(), function.opset()) == (13, 9)
    made.check_view()
    made.set_opset("", 13, function)
    made.check_view()
    assert [
        len(node.inputs) for graph in made.graphs() for node in graph.nodes_of("ReduceSum")
    ] == [2, 2]
    onnx.checker.check_model(made.to_proto(), full_check=True)
    made.undo_to(0)
    assert content(made) == before


@pytest.mark.parametrize(
    ("imports", "version"),
    [([("", 0), ("", 13)], 13), ([("ai.onnx", 0), ("", 13)], 13), ([("", 9), ("", 13)], 13)],
)
def test_of_two_imports_of_a_domain_the_last_counts(
    imports: list[tuple[str, int]], version: int
) -> None:
    proto = model(
        13, X + "<int64[1] a = {0}> { s = Unsqueeze(x, a)  y = Squeeze(s, a) }"
    ).to_proto()
    del proto.opset_import[:]
    proto.opset_import.extend(onnx.helper.make_opsetid(*entry) for entry in imports)
    assert Model.from_proto(proto).opset() == version
    del proto.opset_import[:]
    proto.opset_import.extend(onnx.helper.make_opsetid(*entry) for entry in reversed(imports[:1]))
    if imports[0][1] < 1:
        with pytest.raises(ModelError, match="imports opset 0; the first one is 1"):
            Model.from_proto(proto)
