"""Types: captured ones, those of unknown operators, rules that packages add, and coverage."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import onnx
import pytest

from tiered import get_pass, optimize
from tiered.graph import (
    Model,
    Node,
    TensorType,
    TypeRule,
    ValueType,
    register_type_rule,
    unregister_type_rule,
)
from tiered.graph.core.types import (
    OpaqueType,
    Shape,
    broadcasts_into,
    contradict,
    is_compatible,
    non_negative_axes,
    read_type,
    same_axes,
    says_no_more,
    type_proto_of,
    without_symbols,
    write_type,
)
from tiered.support.errors import UsageError

HEADER = '<ir_version: 10, opset_import: ["" : 21, "vendor" : 1, "com.microsoft" : 1]> g '


def parsed(text: str) -> Model:
    return Model.from_proto(onnx.parser.parse_model(HEADER + text))


def types(model: Model) -> dict[str, str]:
    return {
        name: str(value.type) for graph in model.graphs() for name, value in graph.values.items()
    }


@contextmanager
def rule(op_type: str, rule: TypeRule) -> Iterator[None]:
    register_type_rule(op_type, "vendor", rule)
    try:
        yield
    finally:
        unregister_type_rule(op_type, "vendor")


def test_a_new_node_in_a_body_knows_the_types_that_it_captures() -> None:
    model = parsed("(float[2,3] x, bool c) => (float[2,3] y) { y = Relu(x) }")
    graph = model.main
    turned = graph.op.Transpose(graph.inputs[0], perm=[1, 0])
    node = graph.add_node("If", (graph.inputs[1],), 1, bodies=("then_branch", "else_branch"))
    for body in node.bodies:
        inner = body.op.Concat(turned, turned, axis=0)
        assert str(inner.type) == "float[6,2]"
        body.add_output(inner)
    assert str(node.output.type) == "float[6,2]"


def test_a_capture_from_two_graphs_above_has_its_type() -> None:
    model = parsed(
        "(float[N,3] x, bool c) => (float[N,3] y) { a = Relu(x) y = If(c) <"
        "then_branch = t () => (float[N,3] p) { p = If(c) <"
        "then_branch = tt () => (float[N,3] r) { r = Neg(a) },"
        "else_branch = te () => (float[N,3] s) { s = Abs(a) }> },"
        "else_branch = e () => (float[N,3] q) { q = Identity(a) }> }"
    )
    inner = next(graph for graph in model.graphs() if graph.name == "tt")
    captured = model.main.values["a"]
    assert str(inner.op.Exp(captured).type) == "float[N,3]"


def test_an_unknown_operator_keeps_its_declared_types() -> None:
    model = parsed(
        "(float[N,3] x) => (float[N,4] y) <float[N,4] a> { a = vendor.Widen(x) y = Relu(a) }"
    )
    assert types(model)["a"] == "float[N,4]"
    node = model.main.nodes[1]
    assert str(model.main.op.Neg(node.inputs[0]).type) == "float[N,4]"


def test_consumers_of_an_unknown_operator_have_no_type() -> None:
    model = parsed("(float[N,3] x) => (float[] y) { a = vendor.Widen(x) b = Neg(a) y = Relu(b) }")
    assert types(model) == {"x": "float[N,3]", "a": "None", "b": "None", "y": "float"}


def widened(node: Node) -> ValueType | None:
    x = node.input(0)
    assert x is not None
    return TensorType(x.dtype or 1, (*(x.shape or ()), node.attr("by")))


def test_a_rule_infers_an_operator_and_its_consumers() -> None:
    text = "(float[N,3] x) => (float y) { a = vendor.Widen<by=2>(x) b = Neg(a) y = Relu(b) }"
    with rule("Widen", widened):
        model = parsed(text)
        assert types(model)["a"] == types(model)["b"] == "float[N,3,2]"
        new = model.main.op("vendor").Widen(model.main.values["a"], by=5)
        assert str(model.main.op.Neg(new).type) == "float[N,3,2,5]"
    assert types(parsed(text))["a"] == "None"


def test_a_rule_may_give_several_types_and_may_not_know_some() -> None:
    def pair(node: Node) -> list[ValueType | None]:
        return [None, TensorType(7, (1,))]

    with rule("Pair", pair):
        model = parsed("(float[2] x) => (float[2] y) { a, b = vendor.Pair(x) y = Neg(x) }")
        assert (types(model)["a"], types(model)["b"]) == ("None", "int64[1]")


def test_a_rule_that_does_not_fit_the_operands_says_nothing() -> None:
    with rule("Widen", lambda node: TensorType(1, node.inputs[7].shape)):  # type: ignore[union-attr]  # on purpose
        assert types(parsed("(float[2] x) => (float y) { y = vendor.Widen(x) }"))["x"] == "float[2]"


def test_the_operators_of_onnx_take_no_rules_and_each_other_one_takes_one() -> None:
    with pytest.raises(UsageError, match="onnx knows the types"):
        register_type_rule("Relu", "", widened)
    with rule("Widen", widened), pytest.raises(UsageError, match="there is a type rule for"):
        register_type_rule("Widen", "vendor", lambda node: None)


def test_onnxruntimes_common_operators_have_rules() -> None:
    model = parsed(
        "(float[N,3] x, float s, uint8 z) => (float[N,3] y) { a = com.microsoft.Gelu(x)"
        " b = com.microsoft.QuantizeLinear(a, s, z) y = com.microsoft.DequantizeLinear(b, s, z) }"
    )
    assert types(model)["a"] == "float[N,3]"
    assert types(model)["b"] == "uint8[N,3]"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('FusedConv<activation="Relu", pads=[1,1,1,1]>(x, w)', "float[N,3,5,5]"),
        ("FusedMatMul<transB=1>(x, x)", "float[N,2,5,5]"),
        ('FusedGemm<activation="Relu", transB=1>(m, m)', "float[4,4]"),
        ("MatMulNBits<K=5, N=7, block_size=16>(x, b, s)", "float[N,2,5,7]"),
    ],
)
def test_fused_operators_have_the_types_of_the_operators_in_them(call: str, expected: str) -> None:
    model = parsed(
        "(float[N,2,5,5] x, float[3,2,3,3] w, float[4,6] m, uint8[7,1,8] b, float[7] s) => (float[N,M,P,Q] y)"
        f" {{ a = com.microsoft.{call} y = Relu(a) }}"
    )
    assert types(model)["a"] == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("QLinearAdd(x, s, z, q, s, z, s, z)", "uint8[N,2,5,5]"),
        ("QLinearMul(q, s, z, x, s, z, s, z)", "uint8[N,2,5,5]"),
        ("QLinearSigmoid(x, s, z, s, z)", "uint8[N,2,5,5]"),
        ("QLinearWhere(c, q, s, z, q, s, z, s, z)", "uint8[N,1,5,5]"),
        ("QLinearGlobalAveragePool<channels_last=0>(x, s, z, s, z)", "uint8[N,2,1,1]"),
        ("QLinearAveragePool<kernel_shape=[2,2]>(x, s, z, s, z)", "uint8[N,2,4,4]"),
        ("QLinearConcat<axis=1>(s, z, x, s, z, x, s, z)", "uint8[N,4,5,5]"),
        ("QGemm<transB=1>(m, s, z, m, s, z, , s, z)", "uint8[4,4]"),
        ("QGemm<transB=1>(m, s, z, m, s, z)", "float[4,4]"),
        ("MatMulIntegerToFloat(x, q, s, s)", "float[N,2,5,5]"),
        ("DynamicQuantizeMatMul(f, q, s)", "float[7,5]"),
    ],
)
def test_operators_of_integers_have_types(call: str, expected: str) -> None:
    model = parsed(
        "(uint8[N,2,5,5] x, uint8[5,5] q, uint8[4,6] m, float[7,5] f, bool[N,1,1,1] c, float s,"
        " uint8 z) => (float[A,B,C,D] y)"
        f" {{ a = com.microsoft.{call} b = Cast<to=1>(a) y = Relu(b) }}"
    )
    assert types(model)["a"] == expected


@pytest.mark.parametrize(
    ("v", "expected"), [("float[N,5,6]", "float[N,3,6]"), ("float[N,2,5,4]", "float[N,3,8]")]
)
def test_heads_are_side_by_side_again(v: str, expected: str) -> None:
    model = parsed(
        f"(float[N,3,8] q, {v} v) => (float[A,B,C] y) {{"
        " a = com.microsoft.MultiHeadAttention<num_heads=2>(q, v, v) y = Relu(a) }"
    )
    assert types(model)["a"] == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [("num_heads=2", "float[N,3,4]"), ("num_heads=2, qkv_hidden_sizes=[5,5,2]", "float[N,3,2]")],
)
def test_attention_has_the_width_of_its_values(attributes: str, expected: str) -> None:
    model = parsed(
        "(float[N,3,8] x, float[8,12] w, float[12] b) => (float[A,B,C] y) {"
        f" a = com.microsoft.Attention<{attributes}>(x, w, b) y = Relu(a) }}"
    )
    assert types(model)["a"] == expected


def test_the_present_is_as_long_as_the_past() -> None:
    model = parsed(
        "(float[2,1,16] q, float[2,1,8] k, float[2,1,P,8] past, int32[2] l, int32 t) =>"
        " (float[A,B,C] y) { a, b, c = com.microsoft.GroupQueryAttention<num_heads=2,"
        " kv_num_heads=1>(q, k, k, past, past, l, t) y = Relu(a) }"
    )
    assert types(model)["a"] == "float[2,1,16]"
    assert types(model)["c"].startswith("float[2,1,unk__")
    assert types(model)["c"].endswith(",8]")


def test_embeddings_and_their_sum_have_a_vector_for_each_id() -> None:
    model = parsed(
        "(int32[N,3] x, float[7,8] w, float[8] s) => (float[N,3,8] y) {"
        " a, m, t = com.microsoft.EmbedLayerNormalization(x, , w, w, , s, s) y = Relu(t) }"
    )
    assert types(model)["t"] == "float[N,3,8]"
    assert types(model)["m"] == "int32[N]"


def test_the_sum_of_a_skip_layer_norm_has_its_type() -> None:
    model = parsed(
        "(float[N,2,8] x, float[8] s) => (float[N,2,8] y) {"
        " a, m, v, t = com.microsoft.SkipLayerNormalization(x, x, s) y = Relu(t) }"
    )
    assert types(model)["t"] == "float[N,2,8]"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('com.microsoft.Tokenizer<mark=0, pad_value="#", mincharnum=1>(t)', "string[N,unk__.1]"),
        ("com.microsoft.MurmurHash3(t)", "uint32[N]"),
        ("com.microsoft.MurmurHash3<positive=0>(t)", "int32[N]"),
        ("com.microsoft.DynamicTimeWarping(x)", "int32"),
        ("com.microsoft.Pad(x, i)", "float"),
        ("com.microsoft.QLinearConv(q, s, z, q, s, z, s, z)", "uint8"),
        ("ai.onnx.ml.Normalizer(x)", "float"),
        ("ai.onnx.ml.Imputer<imputed_value_int64s=[0]>(i)", "int64"),
        ("ai.onnx.ml.SVMClassifier<classlabels_ints=[0,1]>(x)", "int64"),
        ('ai.onnx.ml.SVMClassifier<classlabels_strings=["a","b"]>(x)', "string"),
    ],
)
def test_a_signature_determines_the_dtype_of_operators_without_a_rule(
    call: str, expected: str
) -> None:
    results = "a, p" if "Classifier" in call else "a"
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "ai.onnx.ml": 3]> g '
        "(float[N,3] x, string[N] t, int64[4] i, float s, uint8 z, uint8[1,1,2,2] q) => (float[N,3] y)"
        f" {{ {results} = {call} b = Shape(a) y = Relu(x) }}"
    )
    assert types(Model.from_proto(model))["a"] == expected


def test_coverage_names_the_first_value_without_a_type() -> None:
    model = parsed(
        "(float[N,3] x) => (float[2] y) <float[2] w = {1, 2}>"
        "{ a = vendor.Widen(x) b = Neg(a) y = Add(w, w) }"
    )
    coverage = model.type_coverage()
    assert (coverage.total, coverage.typed, coverage.ranked, coverage.static) == (5, 3, 3, 2)
    assert [value.name for value in coverage.untyped] == ["a", "b"]
    assert coverage.share == 0.6
    assert str(coverage) == ("60 % of 5 values have a type; the first without: 'a' of Widen 'a'")


def test_full_coverage_is_a_hundred_percent() -> None:
    model = parsed("(float[N,3] x) => (float[N,3] y) { y = Neg(x) }")
    assert str(model.type_coverage()) == "100 % of 2 values have a type"


def test_a_new_node_knows_a_shape_that_comes_from_a_partially_known_value() -> None:
    graph = parsed("(float[N,3] x) => (float[N,3] y) { y = Neg(x) }").main
    size = graph.op.Gather(graph.op.Shape(graph.inputs[0]), np.array([0], np.int64))
    rows = graph.op.Concat(size, np.array([7], np.int64), axis=0)
    assert str(graph.op.ConstantOfShape(rows).type) == "float[N,7]"
    assert str(graph.op.Expand(np.zeros(1, np.float32), rows).type) == "float[N,7]"


@pytest.mark.parametrize(
    ("result", "known"),
    [("Neg(x)", "float[2,N]"), ("Neg(s)", "float[2,?]"), ("Unsqueeze(s, zero)", "float")],
)
def test_a_loop_output_keeps_the_dims_common_to_initial_value_and_body(
    result: str, known: str
) -> None:
    model = parsed(
        "(float[2,N] x, int64 n, bool c) => (int64[R] u, int64[S] v) <int64[1] zero = {0}> {"
        " y, z = Loop(n, c, x) <body = b (int64 i, bool k, float[2,N] s) => (bool o, float r,"
        f" float q) {{ o = Identity(k) r = {result} q = Neg(x) }}> u = Shape(y) v = Shape(z) }}"
    )
    y, z = model.main.nodes_of("Loop")[0].outputs
    assert y is not None
    assert z is not None
    assert re.sub(r"unk__[.\d]+", "?", str(y.type)) == known
    assert z.shape is not None
    assert z.shape[1:] == (2, "N")


def test_the_body_of_a_scan_gets_types_from_the_scan() -> None:
    model = parsed(
        "(float[2,3] x, float[5,7,N] w) => (float[A,B] u, float[C,D,E] v) {"
        " y, z = Scan<num_scan_inputs = 1, scan_input_axes = [-2], body = b"
        " (float[?,?] s, float[?,?] r) => (float[?,?] t, float[?,?] q) { t = Neg(s) q = Neg(r) }>"
        "(x, w) u = Relu(y) v = Relu(z) }"
    )
    model.refresh_types()
    (scan,) = model.main.nodes_of("Scan")
    kinds = [str(value.type) for value in scan.bodies[0].inputs]
    assert kinds == ["float[2,3]", "float[5,N]"]


def test_a_body_without_declared_inputs_gets_types_inferred_later() -> None:
    """onnx is not believed of a Reshape to computed sizes, so the body waits for our own rule."""
    made = onnx.parser.parse_model(
        f"""{HEADER} (float[2,3] x, float[5,2,3] w) => (float[A,B] u, float[C,D,E] v) {{
        s = Shape(x) k = Reshape(x, s)
        y, z = Scan<num_scan_inputs = 1, body = b (float[?,?] s1, float[?,?] r)
          => (float[?,?] t, float[?,?] q) {{ t = Add(s1, r) q = Neg(t) }}>(k, w)
        u = Relu(y) v = Relu(z) }}"""
    )
    (body,) = (node.attribute for node in made.graph.node if node.op_type == "Scan")
    for graph in (attribute.g for attribute in body if attribute.name == "body"):
        for value in (*graph.input, *graph.output):
            value.ClearField("type")
    model = Model.from_proto(made)
    model.refresh_types()
    (scan,) = model.main.nodes_of("Scan")
    assert [str(value.type) for value in scan.bodies[0].inputs] == ["float[2,3]", "float[2,3]"]


UNDECLARED = """(float16[2,3] x, int64 n, float[5,N] w) => (float16[A,B] u, float[C] v, float[D,E] q) {
    y, r = Loop(n, , x) <body = b (int64 i, bool c, float16[?,?] s) => (bool d, float16[?,?] t, float z) {
        d = Identity(c) t = Concat<axis = 0>(s, s) z = Cast<to = 1>(i) }>
    k, p = Scan<num_scan_inputs = 1, body = b (float[?] s2, float[?] r2) => (float[?] t2, float[?] q2) {
        t2 = Add(s2, r2) q2 = Neg(t2) }>(m, w)
    m = ReduceMax<keepdims = 0>(w, zero) u = Relu(y) v = Relu(r) q = Relu(p) }"""


def test_a_loop_gives_its_body_the_dtypes_of_its_operands() -> None:
    text = UNDECLARED.replace(") {\n    y", ") <int64[1] zero = {0}> {\n    y", 1)
    made = onnx.parser.parse_model(f"{HEADER} {text}")
    for node in made.graph.node:
        for attribute in node.attribute:
            for value in (*attribute.g.input, *attribute.g.output):
                value.ClearField("type")
    model = Model.from_proto(made)
    model.refresh_types()
    (loop,), (scan,) = model.main.nodes_of("Loop"), model.main.nodes_of("Scan")
    # Each iteration may change the shape.
    kinds = [str(value.type) for value in loop.bodies[0].inputs]
    assert kinds == ["int64", "bool", "float16"]
    assert str(scan.bodies[0].inputs[1].type) == "float[N]"
    model.set_input_shapes({"w": [5, 7]})
    model.refresh_types()
    assert str(scan.bodies[0].inputs[1].type) == "float[7]"


def test_the_declared_inputs_of_a_body_are_known_after_types_are_forgotten() -> None:
    model = parsed(
        "(float[2] x, int64 n) => (float[2] y) { y = Loop(n, , x) <body = b (int64 i, bool c,"
        " float[2] s) => (bool d, float[2] t) { d = Identity(c) t = Neg(s) }> }"
    )
    model.refresh_types()
    before = model.main.structural_hash()
    model.forget_types()
    (loop,) = model.main.nodes_of("Loop")
    assert [str(value.type) for value in loop.bodies[0].inputs] == ["int64[]", "bool[]", "float[2]"]
    assert model.main.structural_hash() == before


def test_a_scan_with_a_parameter_as_its_axes_is_not_inferred() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (float[3,2] x, float[2] s) => (float[2] t, float[3,2] y) { t, y = local.f<n=1>(s, x) }
      <domain: "local", opset_import: ["": 21]>
      f <n> (s, x) => (t, y) {
        t, y = Scan<num_scan_inputs: int = @n, body = b (float[?] a, float[?] r)
          => (float[?] o, float[?] u) { o = Add(a, r) u = Relu(r) }>(s, x) }"""
    model = Model.from_proto(onnx.parser.parse_model(text))
    model.refresh_types()
    (scan,) = model.functions[0].nodes_of("Scan")
    assert [str(value.type) for value in scan.bodies[0].inputs] == ["float[?]", "float[?]"]
    get_pass("partial_evaluate").apply(model)
    result = optimize(onnx.parser.parse_model(text), opt_level=2)
    assert [node.op_type for node in result.graph.node] == ["Scan"]


@pytest.mark.parametrize(
    ("opset", "attributes", "expected"),
    [
        (21, "", "float[N,1,3]"),
        (9, "scan_output_axes = [1], ", "float[1,N,3]"),
        (21, "scan_output_axes = [-1], ", "float[1,3,N]"),
        (21, "scan_input_axes = [-1], ", "float[5,1,3]"),
    ],
)
def test_a_scan_keeps_its_state_types_and_adds_one_row_per_iteration(
    opset: int, attributes: str, expected: str
) -> None:
    """onnx infers no Reshape to sizes that the body computes."""
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x, float[N,5] w)'
        f" => (float[?,?] y, float[?,?,?] z) {{ y, z = Scan<{attributes}num_scan_inputs = 1,"
        " body = b (float[?,?] s, float[?] r) => (float[?,?] t, float[?,?] q) <float[3,1] c ="
        " {1,2,3}, int64[1] m = {-1}, int64[1] o = {1}> { t = Neg(s) h = Concat<axis=0>(o, m)"
        " q = Reshape(c, h) }>(x, w) }"
    )
    model = Model.from_proto(made)
    model.refresh_types()
    assert types(model)["y"] == "float[2,3]"
    assert types(model)["z"] == expected


def test_an_unknown_dim_is_the_same_in_all_consumers_that_keep_it() -> None:
    model = parsed(
        "(float[?] x, bool c) => (float[?] y) <int64 m = {2}> { a = Loop(m, c, x) <body = b"
        " (int64 i, bool k, float[?] s) => (bool o, float[?] r)"
        " { o = Identity(k) r = Concat<axis=0>(s, s) }> b = Neg(a) y = Abs(b) }"
    )
    model.refresh_types()
    a, b, y = (model.main.values[name].shape for name in "aby")
    assert a == b == y
    assert a is not None
    assert str(a[0]).startswith("unk__")


@pytest.mark.parametrize(
    ("constants", "operands", "goes_on", "rows"),
    [
        ("int64 n = {3}", "n, , x", "Identity(k)", 3),
        ("int64 n = {3}, bool c = {1}", "n, c, x", "Identity(k)", 3),
        ("int64 n = {3}, bool c = {0}", "n, c, x", "Identity(k)", 0),
        ("int64 n = {3}", "n, , x", "Constant<value = bool {0}>()", 1),
        ("int64 n = {3}", "n, , x", "Not(k)", None),
        ("bool c = {1}", ", c, x", "Identity(k)", None),
    ],
)
def test_a_loop_collects_a_row_a_turn(
    constants: str, operands: str, goes_on: str, rows: int | None
) -> None:
    model = parsed(
        f"(float[2] x) => (float[9,2] z) <{constants}> {{ y, z = Loop({operands}) <body = b"
        " (int64 i, bool k, float[2] s) => (bool o, float[2] r, float[2] q)"
        f" {{ o = {goes_on} r = Neg(s) q = Neg(r) }}> }}"
    )
    z = model.main.outputs[0]
    assert z.shape is not None
    assert z.shape[1] == 2
    assert z.shape[0] == rows or (rows is None and str(z.shape[0]).startswith("unk__"))


def test_a_failed_onnx_inference_does_not_make_declared_shapes_count() -> None:
    """onnx infers no Reshape that is the output of a body, and so no rows of the Loop."""
    model = parsed(
        "(int64 n, bool c) => (int64[9,1,1] z) { z = Loop(n, c) <body = b (int64 i, bool k) =>"
        " (bool o, int64[1,1] q) <int64[2] s = {1,1}> { o = Identity(k) q = Reshape(i, s) }> }"
    )
    z = model.main.outputs[0]
    assert z.shape is not None
    assert str(z.shape[0]).startswith("unk__")
    assert z.shape[1:] == (1, 1)


@pytest.mark.parametrize(
    ("table", "positions", "total"),
    [
        # Of 64 places the first S are taken; where that is not S, it is not added to S rows.
        ("1,64,4", "float[1,=min(64,S),4]", "float[B,S,4]"),
        ("1,1,4", "float[1,unk__.1,4]", "float[B,unk__.2,4]"),
        # Of none, one row and none broadcast to none.
        ("1,0,4", "float[1,0,4]", "float[B,0,4]"),
        ("1,T,4", "float[1,unk__.1,4]", "float[B,unk__.2,4]"),
    ],
)
def test_rows_and_as_many_places_of_a_table_broadcast_to_the_rows(
    table: str, positions: str, total: str
) -> None:
    model = parsed(
        f"(float[B,S,4] x, float[{table}] t) => (float[B,S,4] y)"
        " <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}>"
        " { s = Shape(x) n = Slice(s, one, two) p = Slice(t, zero, n, one) y = Add(x, p) }"
    )
    assert types(model)["p"] == positions
    assert types(model)["y"] == total


def test_places_in_the_middle_of_a_table_are_not_known_to_be_as_many() -> None:
    model = parsed(
        "(float[B,S,4] x, float[1,64,4] t) => (float[B,S,4] y)"
        " <int64[1] one = {1}, int64[1] two = {2}>"
        " { s = Shape(x) n = Slice(s, one, two) p = Slice(t, one, n, one) y = Add(x, p) }"
    )
    assert "S" not in types(model)["y"]


@pytest.mark.parametrize("opset", [8, 10, 11, 21])
def test_an_if_has_the_dims_common_to_both_branches(opset: int) -> None:
    text = (
        "(float[N] x, float[2] w, bool c) => (float[?] y, float[?] z) {"
        " v = If(c) <then_branch = t () => (float[?] p) { p = Neg(x) },"
        " else_branch = e () => (float[?] q) { q = Neg(w) }> y = Relu(v)"
        " z = If(c) <then_branch = t2 () => (float[?] p2) { p2 = Neg(w) },"
        " else_branch = e2 () => (float[?] q2) { q2 = Exp(w) }> }"
    )
    model = Model.from_proto(
        onnx.parser.parse_model(HEADER.replace('"" : 21', f'"" : {opset}') + text)
    )
    model.refresh_types()
    known = {name: value.shape for name, value in model.main.values.items()}
    assert known["z"] == (2,)
    assert known["v"] == known["y"]
    assert known["v"] not in {(2,), ("N",)}


@pytest.mark.parametrize(
    ("x", "target", "expected"),
    [
        # Where n is 0 the first dim is copied: [2, 0].
        ("2,1,n", "i, minus", "?,?"),
        ("m,1,n", "i, minus", "?,?"),
        # There is nothing to copy but another 0.
        ("n,1,n", "i, minus", "n,n"),
        # No dim is left out that could make up for the one that is copied.
        ("2,1,n", "i, two", "n,2"),
        # One that is not known may be any.
        ("?,1,n", "i, minus", "?,?"),
    ],
)
def test_a_zero_in_a_reshape_is_not_a_size(x: str, target: str, expected: str) -> None:
    model = parsed(
        f"(float[{x}] x) => (float[?,?] y)"
        " <int64[1] n = {-1}, int64[1] minus = {-1}, int64[1] two = {2}> { h = Shape(x)"
        f" i = Gather(h, n) t = Concat<axis=0>({target}) y = Reshape(x, t) }}"
    )
    assert re.sub(r"unk__\.\d+", "?", types(model)["y"]) == f"float[{expected}]"


@pytest.mark.parametrize(
    ("operator", "perm"),
    [
        ("Transpose<perm=[2,0,1]>(x)", (2, 0, 1)),
        ("Transpose(x)", (2, 1, 0)),
        ("Transpose(v)", None),
        ("Transpose<perm=[1,1,0]>(x)", None),
        ("Transpose<perm: ints = @perm>(x)", None),
        ("vendor.Transpose<perm=[2,0,1]>(x)", None),
        ("Relu(x)", None),
    ],
)
def test_the_permutation_of_a_transpose(operator: str, perm: tuple[int, ...] | None) -> None:
    model = parsed(
        "(float[2,3,4] i) => (float[] o) { o = vendor.f<perm=[0,1,2]>(i) }"
        ' <domain: "vendor", opset_import: ["" : 21, "vendor" : 1]>'
        f" f <perm> (v) => (y) <float[2,3,4] x> {{ x = Identity(v) y = {operator} }}"
    )
    assert model.functions[0].nodes[-1].perm == perm


def test_types_of_a_model_with_functions_are_forgotten() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x) => (float[2] y)'
        ' { t = l.f(x) y = Abs(t) } <domain: "l", opset_import: ["" : 21]> f (p) => (q)'
        " { q = Neg(p) }"
    )
    model = Model.from_proto(onnx.parser.parse_model(text))
    model.refresh_types()
    model.forget_types()
    assert model.main.values["t"].shape == (2,)


@pytest.mark.parametrize(
    ("stated", "known", "expected"),
    [
        (None, TensorType(1, (2,)), True),
        (TensorType(1, None), TensorType(1, (2,)), True),
        (TensorType(1, None), TensorType(7, (2,)), False),
        (TensorType(1, (None, "N")), TensorType(1, (2, "N")), True),
        (TensorType(1, (3, "N")), TensorType(1, (2, "N")), False),
        (TensorType(1, (2, 3)), TensorType(1, (2,)), False),
        (TensorType(1, (2,)), TensorType(1, None), False),
        (TensorType(1, (2,)), None, False),
        (TensorType(7, (2,)), TensorType(1, (2,)), False),
    ],
)
def test_a_type_says_no_more_if_another_implies_it(
    stated: ValueType | None, known: ValueType | None, expected: bool
) -> None:
    assert says_no_more(stated, known) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (TensorType(1, (2, "N")), TensorType(1, (2, 5)), True),
        (TensorType(1, (2, "N")), TensorType(1, (3, "N")), False),
        (TensorType(1, (2,)), TensorType(1, (2, 2)), False),
        (TensorType(1, None), TensorType(1, (2,)), True),
        (TensorType(1, None), TensorType(7, None), False),
        (TensorType(1, (2,)), TensorType(7, (2,)), False),
        (TensorType(1, (2,)), None, True),
    ],
)
def test_types_are_compatible_if_a_tensor_can_be_of_both(
    one: ValueType | None, other: ValueType | None, expected: bool
) -> None:
    assert is_compatible(one, other) is is_compatible(other, one) is expected


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((), None, True),
        ((1,), None, False),
        (None, (2,), False),
        ((3,), (2, 3), True),
        ((1, 3), (2, 3), True),
        ((2, 1), (3,), False),
        (("N",), ("N",), True),
        ((None,), (None,), False),
        ((2,), (3,), False),
    ],
)
def test_a_shape_surely_broadcasts_into_another(
    shape: Shape, target: Shape | None, expected: bool
) -> None:
    assert broadcasts_into(shape, target) is expected


def test_axes_are_counted_from_the_front_if_the_rank_is_known() -> None:
    assert non_negative_axes([-1, 0], 3) == (2, 0)
    assert non_negative_axes([1, 0], None) == (1, 0)
    assert non_negative_axes([-1], None) is None
    assert same_axes([0, -1], [1, 0], 2)
    assert not same_axes([0, -1], [1, 0], 3)
    assert same_axes([-1], [-1], None)
    assert not same_axes([-1], [0], None)
    assert not same_axes([0], [3], 3)


SEQUENCE = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(1, ["N", 2]))


def test_types_are_read_from_protos_and_written_to_them() -> None:
    made = onnx.helper.make_tensor_type_proto
    for proto, text in (
        (made(1, [2, 0, "N", None]), "float[2,0,N,?]"),
        (made(7, []), "int64[]"),
        (made(7, None), "int64"),
        (SEQUENCE, "sequence"),
        (onnx.TypeProto(), "None"),
    ):
        read = read_type(proto)
        assert str(read) == text
        assert write_type(read) == proto
    assert read_type(made(99, [2])) is None
    assert str(OpaqueType(b"")) == "unknown"
    unnamed = made(1, [-1, "*", "ab"]).SerializeToString().replace(b"ab", b"\xff\xfe")
    assert read_type(onnx.TypeProto.FromString(unnamed)) == TensorType(1, (None, None, None))
    largest = (1 << 63) - 1
    assert write_type(TensorType(1, (largest, 1 << 63))) == made(1, [largest, None])


def test_types_of_sequences_are_compared_as_a_whole() -> None:
    sequence, tensor = read_type(SEQUENCE), TensorType(1, (2,))
    assert says_no_more(sequence, sequence)
    assert is_compatible(sequence, sequence)
    assert not says_no_more(sequence, tensor)
    assert not contradict(sequence, tensor)
    assert not contradict(tensor, sequence)
    assert not contradict(None, None)
    assert contradict(tensor, TensorType(7, (2,)))
    for value_type in (tensor, TensorType(1, None)):
        assert not is_compatible(sequence, value_type)
        assert not is_compatible(value_type, sequence)


def test_a_declaration_without_symbols_keeps_the_sizes_of_all_tensors_in_it() -> None:
    for kind in (
        "float[{},2]",
        "seq(float[{},2])",
        "optional(float[{},2])",
        "map(int64, float[{},2])",
        "sparse_tensor(float[{},2])",
    ):
        named, unnamed = (
            onnx.parser.parse_graph(f"g ({kind.format(dim)} x) => (float y) {{ }}").input[0]
            for dim in "N?"
        )
        assert named != unnamed
        assert without_symbols(named) == unnamed


def test_an_array_has_a_type_and_a_list_of_arrays_one_without_a_shape() -> None:
    made = onnx.helper.make_tensor_type_proto
    assert type_proto_of(np.zeros((2, 3), np.float32)) == made(1, [2, 3])
    assert type_proto_of(np.array(["a"], object)) == made(8, [1])
    assert type_proto_of(np.array([b"a"])) == made(8, [1])
    assert type_proto_of(np.float64(0)) == made(11, [])
    of_arrays = onnx.helper.make_sequence_type_proto(made(7, None))
    assert type_proto_of([np.zeros(2, np.int64), np.zeros((), np.float32)]) == of_arrays
    for value, name in (((1, 2), "tuple"), ([], "list")):
        with pytest.raises(TypeError, match=f"a {name} has no ONNX type; give an array"):
            type_proto_of(value)


def test_types_of_sequences_optionals_and_maps_are_compatible_by_their_elements() -> None:
    kinds = [
        "seq(float[2])", "seq(float[N])", "seq(float[M])", "seq(float[3])", "seq(float[2,3])",
        "seq(double[2])", "optional(float[2])", "optional(float[K])", "optional(seq(float[N]))",
        "optional(seq(float[4]))", "map(int64, float[2])", "map(int64, float[N])",
        "map(string, float[2])", "sparse_tensor(float[2])", "sparse_tensor(float[N])", "float[2]",
    ]  # fmt: skip
    model = parsed(f"({', '.join(f'{kind} v{at}' for at, kind in enumerate(kinds))}) => () {{ }}")
    found = [
        [at for at, other in enumerate(model.main.inputs) if is_compatible(one.type, other.type)]
        for one in model.main.inputs
    ]
    assert found == [
        [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [1, 2, 3], [4], [5], [6, 7], [6, 7], [8, 9], [8, 9],
        [10, 11], [10, 11], [12], [13], [14], [15],
    ]  # fmt: skip
