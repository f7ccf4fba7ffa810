"""`Model.set_opset` converts the nodes of one graph, or refuses the version."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from tests.small import content
from tiered import Model
from tiered.graph.opset.same_meaning import why_not_at
from tiered.support.errors import ModelError
from tiered.testing import parse


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


STOCK = """(float[2,3] x, int64[1] i, bfloat16[2] b, bool c, float[1,1,4,4] im, double[2] d) => (float[A] last)
    <int64[1] one = {1}, float half = {0.5}, float[4] up = {1,1,2,2}> { u = vendor.F(x) r = Identity(u)"""
REASONS: dict[tuple[str, int, int], str | None] = {
    ('y = Relu(x)', 13, 14): None,
    ('y = Relu(x)', 14, 21): None,
    ('y = Nobody(x)', 13, 14): None,
    ('y = Gelu(x)', 20, 19): 'is unknown to version 19',
    ('y = Mish(x)', 9, 18): 'is unknown to version 9',
    ('y = Upsample(im, up)', 9, 10): 'is deprecated in Upsample-10',
    ('y = Dropout<ratio=0.5>(x)', 11, 12): "has the attribute 'ratio', which Dropout-12 lacks",
    ('y = Dropout(x)', 11, 12): None,
    ('y = Add(b, b)', 13, 12): 'reads bfloat16, which Add-7 does not take',
    ('y = Add(u, u)', 13, 12): None,
    ('y = Add(x, x)', 13, 7): None,
    ('y = Add(x, x)', 7, 6): 'has another meaning in Add-6',
    ('y = Add(x, x)', 13, 6): 'has another meaning in Add-6',
    ('y = Cast<to=1, saturate=1>(d)', 19, 18): "has the attribute 'saturate', which Cast-13 lacks",
    ('y = Cast<to=1>(d)', 19, 18): None,
    ('y = Cast<to=1, odd=1>(d)', 19, 18): None,
    ('y = Softmax(x)', 12, 13): "has the default of 'axis', which differs in Softmax-13",
    ('y = Softmax(x)', 13, 12): "has the default of 'axis', which differs in Softmax-11",
    ('y = Softmax<axis=1>(x)', 12, 13): 'has another meaning in Softmax-13',
    ('y = Softmax<axis=-1>(x)', 12, 13): None,
    ('y = Softmax<axis=0>(x)', 12, 13): 'has another meaning in Softmax-13',
    ('y = Softmax<axis=0>(x)', 13, 12): 'has another meaning in Softmax-11',
    ('y = Softmax<axis=1>(u)', 13, 12): 'has another meaning in Softmax-11',
    ('y = Softmax<axis=-1>(u)', 13, 12): None,
    ('y = Squeeze(im, one)', 13, 12): "does not fit Squeeze-11: node 'y' (Squeeze-11) has 2 inputs; its operator takes 1",
    ('y = Squeeze<axes=[0]>(im)', 12, 13): "has the attribute 'axes', which Squeeze-13 lacks",
    ('y = Squeeze<axes=[0]>(im)', 12, 11): None,
    ('y = ReduceMax(x)', 17, 18): None,
    ('y = ReduceMax<axes=[0]>(x)', 17, 18): "has the attribute 'axes', which ReduceMax-18 lacks",
    ('y = ReduceSum<axes=[0]>(x)', 11, 12): None,
    ('y = Clip(x, half)', 11, 12): None,
    ('y = Clip(x)', 11, 13): None,
    ('y = Clip<min=0.5>(x)', 6, 10): None,
    ('y = Clip<min=0.5>(x)', 10, 11): "has the attribute 'min', which Clip-11 lacks",
    ('y = Clip(d)', 10, 11): 'has another meaning in Clip-11',
    ('y = BatchNormalization(im, x, x, x, x)', 13, 14): None,
    ('y = BatchNormalization(im, x, x, x, x)', 14, 15): None,
    ('y = Resize(im, up)', 10, 11): "does not fit Resize-11: node 'y' (Resize-11) has 2 inputs; its operator takes 3 to 4",
    ('y = Resize(im, , up)', 13, 18): None,
    ('y = Resize(im, , up)', 18, 19): None,
    ('y = Gather(x, one)', 13, 11): None,
    ('y = Gather(x, i)', 11, 13): None,
    ('y, k = TopK(x, one)', 10, 11): None,
    ('y = Pad(x, one)', 13, 18): None,
    ('y = Identity(c)', 13, 14): None,
    ('y = Where(c, x, x)', 9, 16): None,
    ('y = MaxPool<kernel_shape=[2,2]>(im)', 12, 8): None,
    ('y, z = MaxPool<kernel_shape=[2,2]>(im)', 8, 7): "does not fit MaxPool-1: node 'y' (MaxPool-1) has 2 outputs; its operator takes 1",
    ('y = LeakyRelu(x)', 6, 16): 'has another meaning in LeakyRelu-16',
    ('y = Selu(x)', 6, 22): 'has another meaning in Selu-22',
    ('y = Selu(x)', 1, 6): "has the default of 'gamma', which differs in Selu-6",
    ('y = GroupNormalization<num_groups=1>(im, x, x)', 21, 20): 'is deprecated in GroupNormalization-18',
    ('y = LayerNormalization(x, x)', 17, 16): 'is unknown to version 16',
    ('y = LayerNormalization(x, x)', 16, 17): None,
    ('y = Relu(x)', 13, 13): None,
    ('y = com.microsoft.Softmax(x)', 12, 13): None,
    ('y = Softmax<axis=1>(im)', 13, 12): 'has another meaning in Softmax-11',
    ('y = Softmax<axis=3>(im)', 13, 12): 'has another meaning in Softmax-11',
    ('y = Clip(d, , )', 11, 10): "does not fit Clip-6: node 'y' (Clip-6) has 2 inputs; its operator takes 1",
    ('y = Max(x, )', 8, 7): None,
    ('y = Gather(x, i)', 11, 1): 'has another meaning in Gather-1',
    ('y = Gather<axis=-1>(x, one)', 11, 1): 'has another meaning in Gather-1',
}  # fmt: skip


def reason(call: str, before: int, after: int) -> str | None:
    header = f'<ir_version: 8, opset_import: ["": {before}, "vendor": 1]> g'
    node = Model.from_proto(parse(f"{header} {STOCK} {call} last = vendor.F() }}")).main.nodes[-2]
    return why_not_at(node, before, after)


def test_why_a_node_is_another_one_at_another_opset() -> None:
    for (call, before, after), expected in REASONS.items():
        assert reason(call, before, after) == expected, (call, before, after)
    node = model(13, X + "{ y = Relu(x) }").main.nodes[0]
    assert why_not_at(node, 13, None) == "uses it"


def test_imports_of_other_domains_are_checked_by_their_schemas() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": {}, "own": 1]>
        g (float[2,3] x) => (float[2,3] y) {{ {} }} <domain: "ai.onnx.ml", opset_import: ["": 17]>
        Local (v) => (w) {{ w = Neg(v) }}"""
    for version, nodes, after, expected in (
        (3, "y = ai.onnx.ml.Normalizer(x)", 2, None), (3, "y = ai.onnx.ml.Local(x)", None, None),
        (3, "y = own.F(x)", None, None),
        (3, "y = ai.onnx.ml.Normalizer(x)", None,
         "<Graph 'g', 1 node> cannot drop the import of domain 'ai.onnx.ml' instead of version 3: "
         "node 'y' (Normalizer) uses it; convert the nodes first"),
        (1, 'y = ai.onnx.ml.LabelEncoder<classes_strings=["a"]>(x)', 2,
         "<Graph 'g', 1 node> cannot import version 2 of domain 'ai.onnx.ml' instead of version 1: "
         "node 'y' (LabelEncoder) "),
        (3, " ".join(f"v{at} = ai.onnx.ml.Normalizer(x)" for at in range(7)) + " y = Neg(v0)", None,
         "node 'v4' (Normalizer) uses it; and 2 more; convert the nodes first"),
        (3, " ".join(f"v{at} = ai.onnx.ml.Normalizer(x)" for at in range(5)) + " y = Neg(v0)", None,
         "node 'v4' (Normalizer) uses it; convert the nodes first"),
    ):  # fmt: skip
        made = Model.from_proto(parser.parse_model(text.format(version, nodes)))
        if expected is None:
            made.set_opset("ai.onnx.ml", after)
            continue
        with pytest.raises(ModelError) as caught:
            made.set_opset("ai.onnx.ml", after)
        assert expected in str(caught.value)
