import pytest

from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_deadend"


def test_what_reaches_no_output_goes() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { a = Exp(x) b = Neg(a) y = Relu(x) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_operators_that_nobody_knows_go_too() -> None:
    assert_rewrites(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { a = d.Mystery(x) y = Relu(x) }",
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { y = Relu(x) }",
        runtime="none",
    )


def test_a_loop_whose_results_nobody_reads_goes_with_its_body() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, int64 n, bool c) => (float[2] y) { k = Exp(x) a = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo)"
        " { co = Identity(ci) xo = Add(xi, k) }> y = Relu(x) }",
        "(float[2] x, int64 n, bool c) => (float[2] y) { y = Relu(x) }",
    )


def test_what_only_a_dead_node_of_a_body_captured_goes_in_the_same_run() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { a = Exp(x) b = Neg(x) y = If(c) <"
        "then_branch = t () => (float[2] p) { dead = Add(a, b) p = Relu(b) },"
        "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
        "(float[2] x, bool c) => (float[2] y) { b = Neg(x) y = If(c) <"
        "then_branch = t () => (float[2] p) { p = Relu(b) },"
        "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
    )


def test_functions_are_graphs_too() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[2] x) => (float[2] y)'
    function = '<domain: "d", opset_import: ["" : 21]> f (a) => (b)'
    assert_rewrites(
        PASS,
        f"{header} {{ y = d.f(x) }} {function} {{ c = Exp(a) b = Relu(a) }}",
        f"{header} {{ y = d.f(x) }} {function} {{ b = Relu(a) }}",
    )


def test_an_optional_output_at_the_end_is_cut_off() -> None:
    assert_rewrites(
        PASS,
        "(float[6] x) => (float[A] y, int64[B] i) { y, i, inverse, counts = Unique(x) }",
        "(float[6] x) => (float[A] y, int64[B] i) { y, i = Unique(x) }",
    )


def test_an_optional_output_in_the_middle_becomes_absent() -> None:
    assert_rewrites(
        PASS,
        "(float[2,4] x, float[4] s) => (float[2,4] y, float[2,1] i)"
        " { y, mean, i = LayerNormalization(x, s) }",
        "(float[2,4] x, float[4] s) => (float[2,4] y, float[2,1] i)"
        " { y, , i = LayerNormalization(x, s) }",
    )


def test_a_first_output_may_be_optional_as_well() -> None:
    interface = "(float[2,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[1,1,2] c)"
    assert_rewrites(
        PASS,
        f"{interface} {{ y, h, c = LSTM<hidden_size=2>(x, w, r) }}",
        f"{interface} {{ , , c = LSTM<hidden_size=2>(x, w, r) }}",
    )


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [(8, "y, m, v, sm, sv", "momentum=0.5"), (14, "y, m, v", "training_mode=1")],
)
def test_the_statistics_of_a_batch_norm_make_it_a_training_one(
    opset: int, outputs: str, attributes: str
) -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,2,2] x, float[2] s, float[2] b, float[2] mean, float[2] var)"
        f" => (float[1,2,2,2] y) {{ {outputs} = BatchNormalization<{attributes}>(x, s, b, mean, var) }}",
        opset=opset,
    )


def test_an_attention_with_past_keys_keeps_the_present_ones() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v, float[1,2,5,4] pk,"
        " float[1,2,5,4] pv) => (float[1,2,3,4] y) { y, nk, nv = Attention(q, k, v,, pk, pv) }",
        opset=23,
    )


def test_the_outputs_of_a_loop_keep_their_places() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, int64 n, bool c) => (float[2] y) { a, y = Loop(n, c, x, x) <"
        "body = b (int64 i, bool ci, float[2] p, float[2] q) => (bool co, float[2] r, float[2] s)"
        " { co = Identity(ci) r = Neg(p) s = Add(p, q) }> }",
    )


def test_the_indices_of_a_max_pool_stay_because_onnxruntime_treats_nan_otherwise_without() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,4,4] x) => (float[1,1,2,2] y)"
        " { y, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }",
    )


def test_an_operator_without_outputs_is_there_for_its_effect() -> None:
    model = parse(
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { y = Relu(x) out = d.Print(y) }"
    )
    del model.graph.node[1].output[:]
    assert_unchanged(PASS, model, because="a node without outputs has side effects")


def test_a_known_node_without_outputs_goes() -> None:
    before = parse("(float[2] x) => (float[2] y) { a = Exp(x) y = Relu(x) }")
    before.graph.node[0].output[0] = ""
    assert_rewrites(PASS, before, "(float[2] x) => (float[2] y) { y = Relu(x) }", runtime="none")
