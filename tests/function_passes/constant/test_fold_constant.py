import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorAnnotation, numpy_helper

from tests.small import loaded_apart
from tiered import Model, PassContext, PassInfo, Value, get_pass
from tiered.runtime import Session, evaluate
from tiered.runtime.fold import fold_constants, node_evaluation as folding, session_batches
from tiered.runtime.fold.node_evaluation import OnFailure
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fold_constant"


def _ops(model: onnx.ModelProto, **options: Any) -> list[str]:
    """Return the operators that folding leaves in the main graph."""
    view = Model.from_proto(model)
    get_pass(PASS, **options).apply(view)
    return [node.op_type for node in view.main.nodes]


# --- what is folded -------------------------------------------------------------------------------


def test_nodes_independent_of_the_inputs_are_folded() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {3,4}>"
        " { c = Add(a, b) y = Mul(x, c) }",
        "(float[2] x) => (float[2] y) <float[2] c = {4,6}> { y = Mul(x, c) }",
    )


def test_a_chain_is_one_constant() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}>"
        " { b = Neg(a) c = Abs(b) d = Add(c, b) e = Sub(d, c) y = Mul(x, e) }",
        "(float[2] x) => (float[2] y) <float[2] e = {-1,-2}> { y = Mul(x, e) }",
    )


def test_special_values_are_those_of_the_runtime() -> None:
    assert_rewrites(
        PASS,
        "(float[4] x) => (float[4] y) <float[4] a = {1,-1,0,-0.0}, float z = {0}>"
        " { b = Div(a, z) c = Neg(b) y = Min(x, c) }",
        "(float[4] x) => (float[4] y) <float[4] c = {-inf, inf, nan, nan}> { y = Min(x, c) }",
    )


def test_integers_are_divided_as_integers() -> None:
    assert_rewrites(
        PASS,
        "(int64[2] x) => (int64[2] y) <int64[2] a = {-7,7}, int64 b = {2}>"
        " { c = Div(a, b) d = Mod(a, b) e = Sub(c, d) y = Add(x, e) }",
        "(int64[2] x) => (int64[2] y) <int64[2] e = {-4,2}> { y = Add(x, e) }",
    )


def test_large_integers_are_exact() -> None:
    assert_rewrites(
        PASS,
        "(int64[1] x) => (int64[1] y) <int64[1] a = {9007199254740993}, int64[1] b = {2}>"
        " { c = Add(a, b) y = Add(x, c) }",
        "(int64[1] x) => (int64[1] y) <int64[1] c = {9007199254740995}> { y = Add(x, c) }",
    )


def test_16_bit_floats_are_rounded_after_each_node() -> None:
    assert_rewrites(
        PASS,
        # As bits: 2048, to which 1 can be added as often as one likes.
        "(float16[1] x) => (float16[1] y) <float16[1] a = {26624}, float16[1] one = {15360}>"
        " { b = Add(a, one) c = Add(b, one) y = Add(x, c) }",
        "(float16[1] x) => (float16[1] y) <float16[1] c = {26624}> { y = Add(x, c) }",
        runtime="reference",  # onnxruntime rounds once, in the end
    )


def test_doubles_are_computed_as_doubles() -> None:
    assert_rewrites(
        PASS,
        "(double[1] x) => (double[1] y) <double[1] a = {1}, double[1] b = {3}>"
        " { c = Div(a, b) y = Add(x, c) }",
        "(double[1] x) => (double[1] y) <double[1] c = {0.333333333333333314829616256247}>"
        " { y = Add(x, c) }",
    )


def test_bfloat16_comes_out_as_such() -> None:
    assert_rewrites(
        PASS,
        "(bfloat16[1] x) => (bfloat16[2] y) <float[1] a = {1.001}>"
        " { b = Cast<to=16>(a) y = Concat<axis=0>(x, b) }",
        "(bfloat16[1] x) => (bfloat16[2] y) <bfloat16[1] b = {16256}> { y = Concat<axis=0>(x, b) }",
        runtime="none",
    )


def test_an_output_that_is_constant_keeps_its_name() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) <float[2] a = {1,2}>"
        " { b = Neg(a) z = Exp(b) y = Mul(x, z) }",
        "(float[2] x) => (float[2] y, float[2] z)"
        " <float[2] z = {0.36787945, 0.13533528}> { y = Mul(x, z) }",
    )


def test_an_identity_before_an_output_is_folded() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) <float[2] a = {1,2}>"
        " { b = Neg(a) z = Identity(b) y = Relu(x) }",
        "(float[2] x) => (float[2] y, float[2] z) <float[2] b = {-1,-2}>"
        " { z = Identity(b) y = Relu(x) }",
    )


def test_a_small_result_of_something_large_is_worth_it() -> None:
    assert_rewrites(
        PASS,
        "(float[1] x) => (float[1] y) <int64[1] s = {4000000}> { b ="
        " ConstantOfShape<value = float[1] {1}>(s) c = ReduceSum<keepdims=1>(b) y = Add(x, c) }",
        "(float[1] x) => (float[1] y) <float[1] c = {4000000}> { y = Add(x, c) }",
    )


def test_a_result_as_large_as_its_operands_is_no_growth() -> None:
    model = parse(
        "(float[1] x) => (float[N,M] y) <float[1] w = {0}> { t = Transpose(w) y = Mul(x, t) }"
    )
    weight = np.arange(300_000, dtype=np.float32).reshape(300, 1000)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    assert _ops(model) == ["Mul"]


def test_how_many_are_not_zero_is_found_out() -> None:
    assert_rewrites(
        PASS,
        "(int64[1,3] x) => (int64[3,N] y) <int64[4] s = {5,0,7,8}>"
        " { n = NonZero(s) t = Transpose<perm=[1,0]>(n) m = Add(t, x) y = Transpose<perm=[1,0]>(m) }",
        "(int64[1,3] x) => (int64[3,N] y) <int64[3,1] t = {0,2,3}>"
        " { m = Add(t, x) y = Transpose<perm=[1,0]>(m) }",
    )


def test_a_tensor_without_elements_is_a_constant_too() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float[3] a = {1,2,3}, int64[1] z = {0}>"
        " { c = Slice(a, z, z) y = Concat<axis=0>(x, c) }",
        "(float[N] x) => (float[N] y) <float[0] c = {}> { y = Concat<axis=0>(x, c) }",
    )


def test_a_body_computes_no_constant_again_and_again() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, int64 n, bool c) => (float[2] y) <float[2] w = {1,2}> { y = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] p) => (bool co, float[2] r) <float[2] v = {3,4}>"
        " { co = Identity(ci) s = Mul(w, v) r = Add(p, s) }> }",
        "(float[2] x, int64 n, bool c) => (float[2] y) { y = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] p) => (bool co, float[2] r) <float[2] s = {3,8}>"
        " { co = Identity(ci) r = Add(p, s) }> }",
    )


def test_a_function_gets_constant_nodes() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[2] x) => (float[2] y)'
    function = '<domain: "d", opset_import: ["" : 21]> f (a) => (b)'
    assert_rewrites(
        PASS,
        f"{header} {{ y = d.f(x) }} {function} {{ c = Constant<value_float=1.0>()"
        " e = Constant<value_float=2.0>() h = Add(c, e) b = Mul(a, h) }",
        f"{header} {{ y = d.f(x) }} {function}"
        " { h = Constant<value = float {3}>() b = Mul(a, h) }",
    )


def test_before_ir_4_constants_are_nodes() -> None:
    header = '<ir_version: 3, opset_import: ["" : 8]> g (float[2] x) => (float[2] y)'
    assert_rewrites(
        PASS,
        f"{header} {{ c = Constant<value = float[2] {{1,2}}>() d = Neg(c) y = Add(x, d) }}",
        f"{header} {{ d = Constant<value = float[2] {{-1,-2}}>() y = Add(x, d) }}",
    )


def test_old_operators_fold_in_models_that_onnxruntime_cannot_load() -> None:
    model = parse(
        '<ir_version: 14, opset_import: ["" : 28]> g (float[1] x) => (float[1] y)'
        " <float[1] a = {1}> { b = Neg(a) y = Add(x, b) }"
    )
    assert _ops(model) == ["Add"]


def test_a_dropout_outside_of_training_is_a_computation() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}> { b = Dropout(a) y = Add(x, b) }",
        "(float[2] x) => (float[2] y) <float[2] b = {1,2}> { y = Add(x, b) }",
    )


def test_a_range_that_was_given_a_list_of_one_number_gets_the_number() -> None:
    assert_rewrites(
        PASS,
        "(int64[N] x, int64 a) => (int64[M] y) <int64[1] b = {-3}, int64 c = {1}>"
        " { l = Neg(b) r = Range(a, l, c) y = Concat<axis=0>(x, r) }",
        "(int64[N] x, int64 a) => (int64[M] y) <int64 l = {3}, int64 c = {1}>"
        " { r = Range(a, l, c) y = Concat<axis=0>(x, r) }",
    )


def test_one_that_fails_leaves_the_others_to_be_folded() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) <float[2] a = {1,2}, int64 i = {5}> { y = If(c) <"
        "then_branch = t () => (float[2] p) { k = Gather(a, i) m = Neg(a) n = Add(m, x) p = Add(n, k) },"
        "else_branch = e () => (float[2] q) { j = Exp(a) q = Mul(x, j) }> }",
        "(float[2] x, bool c) => (float[2] y) <float[2] a = {1,2}, int64 i = {5}> { y = If(c) <"
        "then_branch = t () => (float[2] p) <float[2] m = {-1,-2}>"
        " { k = Gather(a, i) n = Add(m, x) p = Add(n, k) },"
        "else_branch = e () => (float[2] q) <float[2] j = {2.7182817, 7.389056}> { q = Mul(x, j) }> }",
        runtime="none",
    )


def test_folding_runs_without_instruments_and_options_of_the_context() -> None:
    model = parse("(float[2] x) => (float[2] y) <float[2] a = {1,2}> { b = Neg(a) y = Add(x, b) }")
    seen = set()

    def trace(model: Model, info: PassInfo, is_before: bool) -> None:
        seen.add(info.name)

    with PassContext(disabled=["eliminate_*"], trace=trace):
        made = get_pass(PASS)(model)
    assert seen == {"infer_shapes", PASS}
    assert [node.op_type for node in made.graph.node] == ["Add"]


def test_external_weights_are_read(tmp_path: Path) -> None:
    model = parse(
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {3,4}>"
        " { c = Add(a, b) y = Mul(x, c) }"
    )
    view = loaded_apart(model, tmp_path)
    get_pass(PASS).apply(view)
    result = Session(view.to_proto()).run({"x": np.ones(2, np.float32)})
    assert result["y"].tolist() == [4.0, 6.0]


def test_a_run_that_may_rewrite_no_more_comes_to_an_end() -> None:
    view = Model.from_proto(
        parse(
            "(float[1] x) => (float[1] y) <float[1] a = {1}> { b = Neg(a) c = Exp(b) y = Add(x, b)"
            " z = Add(x, c) }"
        )
    )
    mark = len(view.main.nodes)
    with PassContext(rewrite_limit=0) as ctx:
        get_pass(PASS).apply(view, ctx)
    assert len(view.main.nodes) == mark


# --- what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "node",
    [
        "RandomNormalLike<seed=1.0>(a)",
        "RandomUniformLike(a)",
        "Bernoulli(a)",
        "Dropout(a, r, t)",
        "Dropout(a, r, unknown)",
    ],
)
def test_a_draw_is_no_constant(node: str) -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool unknown = {0}) => (float[2] y)"
        f" <float[2] a = {{0.5,0.5}}, float r = {{0.5}}, bool t = {{1}}> {{ b = {node} y = Add(x, b) }}",
        because=None if "unknown" in node else "it is random, or nothing is known of it",
    )


def test_an_overridable_initializer_is_not_constant() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] a = {1,2}) => (float[2] y) { b = Neg(a) y = Add(x, b) }",
    )


def test_quantised_weights_stay_quantised() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <int8[2] w = {1,2}, float s = {0.5}>"
        " { d = DequantizeLinear(w, s) y = Add(x, d) }",
        because="quantised constants stay quantised",
    )
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] w = {1,2}, float s = {0.5}>"
        " { q = QuantizeLinear(w, s) d = DequantizeLinear(q, s) y = Add(x, d) }",
    )


def test_other_peoples_operators_and_functions_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) <float[2] a = {1,2}> { b = d.f(a) y = Add(x, b) }"
        ' <domain: "d", opset_import: ["" : 21]> f (a) => (b) { b = Neg(a) }',
        because="the operator is not a standard one",
    )


def test_a_result_of_another_type_than_declared_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(values: list[Value], on_failure: OnFailure) -> dict[Value, Any]:
        return {value: np.zeros(3, np.float64) for value in values}

    # No kernel is known to do so; what the file declares is kept in any case.
    monkeypatch.setattr(folding, "evaluate", wrong)
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}> { b = Neg(a) y = Add(x, b) }",
        because="the result has another type than declared",
    )


def test_sparse_constants_are_left_alone() -> None:
    proto = parse("(float[2] x) => (float[2] y) { b = Neg(a) y = Add(x, b) }")
    values = numpy_helper.from_array(np.array([1.0], np.float32), "a")
    indices = numpy_helper.from_array(np.array([1], np.int64))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2]))
    assert_unchanged(PASS, proto, because="an operand is sparse")


# --- control flow ---------------------------------------------------------------------------------

BODY = "b (int64 i, bool ci, float[2] p) => (bool co, float[2] r{more}) {{ co = Identity(ci) {r} }}"


def _loop(r: str, more: str = "") -> str:
    return f"Loop(n, c, a) <body = {BODY.format(r=r, more=more)}>"


@pytest.mark.parametrize(
    ("call", "numbers"),
    [
        (_loop("r = Add(p, a)"), "4,8"),
        (_loop("r = Mul(p, k)"), "8,16"),
        (
            "If(c) <then_branch = t () => (float[2] p) { p = Mul(a, k) },"
            " else_branch = e () => (float[2] q) { q = Identity(a) }>",
            "2,4",
        ),
    ],
)
def test_control_flow_over_constants_is_computed(call: str, numbers: str) -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, float k = {2}, int64 n = {3},"
        f" bool c = {{1}}> {{ b = {call} y = Add(x, b) }}",
        f"(float[2] x) => (float[2] y) <float[2] b = {{{numbers}}}> {{ y = Add(x, b) }}",
    )


def test_a_folded_loop_makes_its_consumers_constant() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, int64 n = {3}, bool c = {1}>"
        f" {{ d = Neg(a) b = {_loop('r = Add(p, d)')} e = Neg(b) y = Add(x, e) }}",
        "(float[2] x) => (float[2] y) <float[2] e = {2,4}> { y = Add(x, e) }",
    )


def test_scan_outputs_of_a_loop_with_known_trip_count_are_folded() -> None:
    assert_rewrites(
        PASS,
        "(int64[3,1] x) => (int64[3,1] y) <int64 n = {3}, bool c = {1}> { b = Loop(n, c) <body = l"
        " (int64 i, bool ci) => (bool co, int64[1] r) <int64[1] s = {1}>"
        " { co = Identity(ci) r = Reshape(i, s) }> y = Add(x, b) }",
        "(int64[3,1] x) => (int64[3,1] y) <int64[3,1] b = {0,1,2}> { y = Add(x, b) }",
    )


def test_a_scan_over_constants_is_computed() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[3,2] z) <float[2] a = {0,0}, float[3,2] w ="
        " {1,2,3,4,5,6}> { b, d = Scan <num_scan_inputs = 1, body = s (float[2] p, float[2] q) =>"
        " (float[2] r, float[2] t) { r = Add(p, q) t = Identity(r) }> (a, w)"
        " y = Add(x, b) z = Mul(x, d) }",
        "(float[2] x) => (float[2] y, float[3,2] z) <float[2] b = {9,12},"
        " float[3,2] d = {1,2,4,6,9,12}> { y = Add(x, b) z = Mul(x, d) }",
    )


@pytest.mark.parametrize(
    ("call", "because"),
    [
        (_loop("r = Add(p, a)").replace("n,", "m,"), "computing it takes too long"),
        (_loop("r = Add(p, a)").replace("n,", ","), "how often it runs is not known beforehand"),
        (_loop("r = RandomUniformLike(p)"), "it is random"),
        (_loop("r = vendor.Mystery(p)"), "it is random, or nothing is known of it"),
        (
            "Loop(n, c, a) <body = b (int64 i, bool ci, float[N] p) => (bool co, float[M] r)"
            " { co = Identity(ci) r = Concat<axis=0>(p, p) }>",
            "the size of the result is not known beforehand",
        ),
        (
            "Loop(n, c, a) <body = b (int64 i, bool ci, float[2] p) => (bool co, float[2] r)"
            " { co = Identity(ci) l = Add(far, i) s = Concat<axis=0>(l, two) e = Expand(p, s)"
            " r = ReduceSum<keepdims=0>(e, zero) }>",
            "memory",
        ),
    ],
)
def test_control_flow_that_might_not_end_or_fit_stays(call: str, because: str) -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]> g (float[2] x) => (float[N] y)'
        " <float[2] a = {1,2}, int64 n = {3}, int64 m = {9223372036854775807}, bool c = {1},"
        " int64[1] far = {1000000000000}, int64[1] two = {2}, int64[1] zero = {0}>"
        f" {{ b = {call} y = Add(x, b) }}",
        because=because,
    )


def test_a_body_with_non_constant_captures_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, int64 n = {3}, bool c = {1}>"
        f" {{ b = {_loop('r = Add(p, x)')} y = Add(x, b) }}",
    )


@pytest.mark.parametrize(
    ("shape", "node"),
    [
        ("{100000}", "ConstantOfShape(s)"),
        ("{100000}", "Expand(a, s)"),
        ("{100000}", "Tile(a, s)"),
    ],
)
def test_a_constant_that_would_be_large_is_left_to_the_runtime(shape: str, node: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[1] x) => (float[N] y) <float[1] a = {{1}}, int64[1] s = {shape}>"
        f" {{ b = {node} y = Add(x, b) }}",
        because="the constant exceeds max_growth",
    )


def test_the_shape_of_a_constant_that_would_be_large_is_computed() -> None:
    assert_rewrites(
        PASS,
        "(float[1] x) => (float[N] y) <int64[1] s = {1000}, int64[1] k = {100}>"
        " { t = Mul(s, k) b = ConstantOfShape(t) y = Add(x, b) }",
        "(float[1] x) => (float[N] y) <int64[1] t = {100000}>"
        " { b = ConstantOfShape(t) y = Add(x, b) }",
    )


def test_how_large_is_too_large_is_an_option() -> None:
    model = parse(
        "(float[1] x) => (float[N] y) <int64[1] s = {100000}> { b = ConstantOfShape(s) y = Add(x, b) }"
    )
    assert _ops(model) == ["ConstantOfShape", "Add"]
    assert _ops(model, max_growth="1MB") == ["Add"]


def test_many_small_constants_are_too_large_together() -> None:
    nodes = " ".join(f"b{i} = Expand(a, s) y{i} = Add(x, b{i})" for i in range(10))
    model = parse(
        f"(float[1] x) => (float[N] y0) <float[1] a = {{1}}, int64[1] s = {{400}}> {{ {nodes} }}"
    )
    assert_unchanged(PASS, model, because="the constants together exceed max_growth")
    assert _ops(model, max_growth="20KB") == ["Add"] * 10


def test_bodies_and_the_main_graph_share_one_sum() -> None:
    model = parse(
        "(float[1] x, bool c) => (float[N] y, float[M] z) <float[1] a = {1}, int64[1] s = {600}>"
        " { b = Expand(a, s) y = Add(x, b) z = If(c) <then_branch = t () => (float[M] p)"
        " { d = Expand(a, s) p = Add(x, d) }, else_branch = e () => (float[M] q) { q = Neg(x) }> }"
    )
    assert_unchanged(PASS, model, because="the constants together exceed max_growth")
    assert _ops(model, max_growth="5KB") == ["Add", "If"]


def test_no_constant_is_folded_that_makes_room_for_one_that_is_too_large() -> None:
    """Folded bit by bit, in many runs, they would be as large as they may not be at once."""
    assert_unchanged(
        PASS,
        "(float[1] x) => (float[N] y, float[M] z) <float[1] a = {1}, int64[1] s = {900},"
        " int64[1] n = {2}> { b = Expand(a, s) c = Tile(b, n) y = Add(x, b) z = Add(x, c) }",
        because="it would make room for a larger constant",
    )


def test_a_constant_that_determines_a_size_does_not_grow() -> None:
    assert_unchanged(
        PASS,
        "(float[1] x) => (float[1] y) <float[1] a = {1}, int64[1] s = {20}>"
        " { b = Expand(a, s) c = Cast<to=7>(b) d = ConstantOfShape(c) e = ReduceSum<keepdims=0>(d)"
        " y = Add(x, e) }",
        because="its consumer has a data-dependent shape",
    )


def test_small_operands_of_a_large_constant_are_folded() -> None:
    model = parse(
        "(float[1] x) => (float[N] y) <float[1] a = {1}, int64[1] s = {900}, int64[1] n = {100}> "
        "{ b = Expand(a, s) c = Neg(b) d = Abs(c) e = Tile(d, n) y = Add(x, e) }"
    )
    assert _ops(model) == ["Tile", "Add"]


def test_of_forty_doublings_only_the_small_ones_are_folded() -> None:
    doublings = " ".join(f"c{i + 1} = Concat<axis=0>(c{i}, c{i})" for i in range(40))
    model = parse(
        f"(float[1] x) => (float[N] y) <float[1] c0 = {{1}}> {{ {doublings} y = Add(x, c40) }}"
    )
    # 4 KiB, by which any model may grow, would do for ten of them, and in a second run for more.
    assert _ops(model) == ["Concat"] * 35 + ["Add"]


def test_no_more_memory_is_taken_than_there_may_be() -> None:
    model = parse("(float[1000] x) => (float[1000] y) { c = Cast<to=1>(w) y = Add(x, c) }")
    zeros = np.zeros(1000, np.float16)
    model.graph.initializer.append(numpy_helper.from_array(zeros, "w"))
    assert_unchanged(
        PASS,
        model,
        because="computing it takes too much memory",
        config={"memory.max": "11KB"},
    )
    with PassContext(config={"memory.max": "13KB"}):
        assert _ops(model) == ["Add"]


def test_large_results_are_computed_in_several_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_LARGEST_SESSION", 4000)
    sessions = []

    def counted(wanted: list[Value], on_failure: OnFailure) -> dict[Value, Any]:
        sessions.append(len(wanted))
        return evaluate(wanted, on_failure)

    monkeypatch.setattr(folding, "evaluate", counted)
    steps = " ".join(f"c{i} = Add(w, k{i}) x{i + 1} = Add(x{i}, c{i})" for i in range(5))
    constants = ", ".join(f"float k{i} = {{{i}}}" for i in range(5))
    model = parse(f"(float[500] x0) => (float[500] x5) <{constants}> {{ {steps} }}")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(500, np.float32), "w"))
    assert _ops(model, max_growth="1MB") == ["Add"] * 5
    assert sessions == [2, 2, 1]


def test_large_results_are_held_one_session_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the session before are on disk when the next one runs."""
    monkeypatch.setattr(folding, "_LARGEST_SESSION", 1)
    monkeypatch.setattr("tiered.graph.core.tensor.SPILLED", 1)
    steps = " ".join(f"c{i} = Transpose(w{i}) x{i + 1} = Add(x{i}, c{i})" for i in range(4))
    model = parse(f"(float[500,1000] x0) => (float[500,1000] x4) {{ {steps} }}")
    for i in range(4):
        numbers = np.full((1000, 500), i, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(numbers, f"w{i}"))
    view = Model.from_proto(model)
    # Loading code takes memory, too.
    assert _ops(parse("(float x) => (float y) <float a = {1}> { b = Neg(a) y = Add(x, b) }"))
    tracemalloc.start()
    get_pass(PASS).apply(view)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [node.op_type for node in view.main.nodes] == ["Add"] * 4
    # The operand and the result of one session, 2 MB each.
    assert peak < 5_000_000


def test_a_range_of_a_hundred_thousand_million_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(int64[1] x) => (int64[N] y) <int64 a = {0}, int64 b = {100000000000}, int64 c = {1}>"
        " { r = Range(a, b, c) y = Add(x, r) }",
        because="the result is too large to compute",
    )


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize(
    ("dividend", "divisor"), [("{1,2}", "{1,0}"), ("{1,-9223372036854775808}", "{-1,-1}")]
)
def test_a_division_that_would_end_the_program_is_left_alone(
    op: str, dividend: str, divisor: str
) -> None:
    assert_unchanged(
        PASS,
        f"(int64[2] x) => (int64[2] y) <int64[2] a = {dividend}, int64[2] b = {divisor}>"
        f" {{ c = {op}(a, b) y = Add(x, c) }}",
        because="an integer division by zero, or one that overflows",
    )


def test_a_divisor_folded_to_0_is_detected_first() -> None:
    assert_rewrites(
        PASS,
        "(int64[2] x, bool c) => (int64[2] y) <int64[2] a = {1,2}> { y = If(c) <"
        "then_branch = t () => (int64[2] p) { z = Sub(a, a) k = Div(a, z) p = Add(x, k) },"
        "else_branch = e () => (int64[2] q) { q = Neg(x) }> }",
        "(int64[2] x, bool c) => (int64[2] y) <int64[2] a = {1,2}> { y = If(c) <"
        "then_branch = t () => (int64[2] p) <int64[2] z = {0,0}> { k = Div(a, z) p = Add(x, k) },"
        "else_branch = e () => (int64[2] q) { q = Neg(x) }> }",
        runtime="none",
    )


def test_operands_of_a_failing_node_are_folded() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, int64 i = {5}>"
        " { b = Neg(a) k = Gather(b, i) y = Add(x, k) }",
        "(float[2] x) => (float[2] y) <float[2] b = {-1,-2}, int64 i = {5}>"
        " { k = Gather(b, i) y = Add(x, k) }",
        runtime="none",
    )


def test_a_failed_evaluation_is_skipped_with_its_reason() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, int64 i = {5}>"
        " { k = Gather(a, i) y = Add(x, k) }",
        because="indices element out of data bounds",
    )


@pytest.mark.parametrize(
    ("dtype", "values", "node"),
    [
        ("string", '{"a"}', "Identity(a)"),
        ("float8e4m3fn", "{1}", "Cast<to=1>(a)"),
        ("int4", "{1}", "Cast<to=1>(a)"),
    ],
)
def test_some_dtypes_are_not_computed(dtype: str, values: str, node: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[1] x) => (float[1] y) <{dtype}[1] a = {values}> {{ b = {node} c = Shape(b) y = Relu(x) }}",
        because="a dtype cannot be computed",
    )


def test_a_size_that_is_only_known_afterwards_is_not_risked() -> None:
    assert_unchanged(
        PASS,
        "(int64[1] x) => (int64[N,3] y) <float[1,4,4] b = {0,0,1,1,0,0,1,1,0,0,1,1,0,0,1,1},"
        " float[1,1,4] s = {1,1,1,1}> { n = NonMaxSuppression(b, s) y = Add(x, n) }",
        because="the size of the result is not known beforehand",
    )


def test_an_attribute_that_the_call_of_a_function_decides_is_not_known() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { y = d.f<p=0.5>(x) }"
        ' <domain: "d", opset_import: ["" : 21]> f <p> (a) => (b) { c = Constant<value_float=-1.0>()'
        " e = LeakyRelu<alpha: float = @p>(c) b = Add(a, e) }",
        because="is a function parameter",
    )


def test_a_result_that_an_annotation_names_stays() -> None:
    model = parse("(float x) => (float y) <float a = {1}> { s = Neg(a) y = Mul(x, s) }")
    annotation = TensorAnnotation(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    model.graph.quantization_annotation.append(annotation)
    assert_unchanged(PASS, model, because="training info or an annotation names the result")


def test_a_kernel_that_ends_its_process_leaves_the_model_as_it_is() -> None:
    assert_unchanged(
        PASS,
        "(int32[1] x) => (int32[1] y) <int32[1] a = {-2147483648}, int32[1] d = {-1}, int64 n = {2}, bool t = {1}>"
        " { l = Loop(n, t, a) <body = b (int64 i, bool k, int32[1] p) => (bool m, int32[1] q)"
        " { m = Identity(k) q = Div(p, d) }> y = Add(x, l) }",
        because="the runtime crashed",
    )


def test_kernels_that_trust_their_operands_fold_in_a_process_of_their_own() -> None:
    assert_rewrites(
        PASS,
        "(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,2,2] a = {1,2,3,4}, float[1,1,1,1] w = {2}>"
        " { b = Neg(a) c = Conv(b, w) y = Add(x, c) }",
        "(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,2,2] c = {-2,-4,-6,-8}> { y = Add(x, c) }",
    )


def test_to_find_the_kernels_that_trust_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_evaluate", lambda *given: {})
    asked = []

    def hashed(self: Value) -> int:
        asked.append(self)
        return self.id

    monkeypatch.setattr(Value, "__hash__", hashed)
    counts = []
    for count in (20, 40):
        nodes = " ".join(f"c{i} = Conv(a, w) e{i} = Exp(a)" for i in range(count))
        model = Model.from_proto(
            parse(
                "(float[1] x) => (float[1] y) <float[1,1,1,1] a = {1}, float[1,1,1,1] w = {2}>"
                f" {{ {nodes} y = Neg(x) }}"
            )
        )
        wanted = [node.output for node in model.main.nodes if node.op_type != "Neg"]
        asked.clear()
        evaluate(wanted, lambda value, error: None)
        counts.append(len(asked))
    assert counts[1] <= 2 * counts[0]


def test_all_that_takes_long_is_computed_or_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_batches, "_MOST_WORK", 100)
    monkeypatch.setattr(session_batches, "_LITTLE_WORK", 10)
    products = "b = MatMul(a, a) c = MatMul(a, k) d = Neg(e)"
    model = parse(
        "(float[4,4] x) => (float[4,4] y) <float[4,4] a, float[4,4] k, float e = {1}>"
        f" {{ {products} f = Add(b, c) g = Add(x, f) y = Mul(g, d) }}"
    )
    for name in "ak":
        numbers = np.arange(16, dtype=np.float32).reshape(4, 4) + len(name)
        model.graph.initializer.append(numpy_helper.from_array(numbers, name))
    assert _ops(model) == ["MatMul", "MatMul", "Add", "Add", "Mul"]
    monkeypatch.setattr(session_batches, "_MOST_WORK", 200)
    assert _ops(model) == ["Add", "Mul"]


def test_many_little_products_that_take_long_together_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_batches, "_MOST_WORK", 40)
    assert_unchanged(
        PASS,
        "(float[2,2] x) => (float[2,2] y) <float[2,2] a = {1,2,3,4}> { "
        + " ".join(f"m{i} = MatMul(a, a)" for i in range(6))
        + " y = Sum(x, m0, m1, m2, m3, m4, m5) }",
        because="computing it takes too long",
    )


def test_a_cascade_of_work_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these waits for the one before it, as 16-bit floats are rounded between sessions."""
    monkeypatch.setattr(fold_constants, "_MOST_WORK_OF_ALL", 5)
    model = Model.from_proto(
        parse(
            "(float16[2] x) => (float16[2] y) <float16[2] a = {1,2}>"
            " { b = Neg(a) c = Abs(b) d = Neg(c) e = Abs(d) y = Add(x, e) }"
        )
    )
    for _ in range(3):
        mark = model.mark()
        for _ in range(2):
            get_pass(PASS).apply(model)
            assert [node.op_type for node in model.main.nodes] == ["Abs", "Add"]
        model.undo_to(mark)


def test_products_of_large_matrices_are_not_all_computed() -> None:
    steps = " ".join(f"m{i + 1} = MatMul(m{i}, m{i})" for i in range(3))
    assert_unchanged(
        PASS,
        "g (float[4096,4096] x) => (float[4096,4096] y) <int64[2] s = {4096,4096}>"
        f" {{ m0 = ConstantOfShape(s) {steps} y = Add(x, m3) }}",
        because="computing it takes too long",
    )


def test_the_cost_of_a_scan_with_a_parameter_as_axes_is_unknown() -> None:
    assert_unchanged(
        PASS,
        """<ir_version: 10, opset_import: ["": 21, "local": 1]>
        g (float[3,2] x) => (float[3,2] y) { t, u = local.f<n=1>() y = Add(x, u) }
        <domain: "local", opset_import: ["": 21]>
        f <n> () => (t, y) {
          s = Constant<value = float[2] {1,2}>() x = Constant<value = float[1,2] {3,4}>()
          t, y = Scan<num_scan_inputs: int = @n, body = b (float[2] a, float[2] r)
            => (float[2] o, float[2] u) { o = Add(a, r) u = Relu(r) }>(s, x) }""",
    )


@pytest.mark.parametrize(
    "inner",
    ["o = LeakyRelu<alpha: float=@p>(k)", "w = Constant<value_float: float=@p>() o = Mul(k, w)"],
)
def test_function_parameters_in_a_body_are_unknown(inner: str) -> None:
    assert_unchanged(
        PASS,
        f"""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[4] x) => (float[4] y) {{ y = f.fn<p=2.0>(x) }}
        <domain: "f", opset_import: ["" : 21]> fn <p> (x) => (y) {{
          k = Constant<value=float[4] {{1.0,2.0,3.0,-4.0}}>() c = Constant<value=bool {{1}}>()
          a = If(c) <then_branch = t () => (float[4] o) {{ {inner} }},
                     else_branch = e () => (float[4] o) {{ {inner} }}>
          y = Sub(a, x) }}""",
        because="is a function parameter",
    )


def test_a_limit_of_bytes_is_one_of_each_constant() -> None:
    text = (
        "(float[8] x) => (float[8] y) <float[8] w = {1,2,3,4,5,6,7,8}> { a = Neg(w) y = Add(x, a) }"
    )
    assert_unchanged(PASS, text, because="the constant exceeds max_tensor_size", max_tensor_size=31)
    assert _ops(parse(text), max_tensor_size=32) == ["Add"]


# --- the outputs of bodies ------------------------------------------------------------------------

LOOP = """(float[2] x, int64 n) => (float[2] y) <bool go = {1}, float[%(size)d] k = {%(numbers)s}> {
    y = Loop(n, go, x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) %(own)s {
        %(condition)s
        s2 = Mul(s, k)
    }> }"""


def test_a_body_returns_a_small_constant_without_a_node() -> None:
    given = {"size": 1, "numbers": "0.5"}
    assert_rewrites(
        PASS,
        LOOP % {**given, "own": "", "condition": "c2 = Identity(go)"},
        LOOP % {**given, "own": "<bool c2 = {1}>", "condition": ""},
    )


def test_a_branch_does_so_too_for_each_of_its_outputs() -> None:
    text = (
        "(float[2] x, bool c) => (float[2] y, float z, float u) <float k = {{3}}> {{"
        " y, z, u = If(c) <then_branch = t () => (float[2] a, float p, float q) {own}"
        " {{ a = Mul(x, k) {made} }}, else_branch = e () => (float[2] b, float r, float s)"
        " {{ b = Neg(x) r = ReduceSum<keepdims=0>(x) s = Relu(r) }}> }}"
    )
    assert_rewrites(
        PASS,
        text.format(own="", made="p = Identity(k) q = Identity(k)"),
        text.format(own="<float p = {3}, float q = {3}>", made=""),
    )


def test_a_large_constant_is_not_repeated() -> None:
    numbers = ",".join(["1"] * 17)
    assert_unchanged(
        PASS,
        "(float[17] x, bool c) => (float[17] y)"
        f" <float[17] k = {{{numbers}}}> {{ y = If(c) <then_branch = t () => (float[17] a)"
        " { a = Identity(k) }, else_branch = e () => (float[17] b) { b = Add(x, k) }> }",
    )


def test_where_a_constant_needs_a_node_or_a_name_the_identity_stays() -> None:
    # The main graph renames constants instead, and before IR 4 they would be inputs.
    assert_unchanged(PASS, "(float x) => (float y, float k) <float k = {1}> { y = Identity(k) }")
    given = {"size": 1, "numbers": "0.5", "own": "", "condition": "c2 = Identity(go)"}
    old = parse(f'<ir_version: 3, opset_import: ["" : 17]> g {LOOP % given}')
    assert get_pass(PASS).apply(old) == old
