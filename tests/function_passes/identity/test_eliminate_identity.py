import pytest
from onnx import TensorAnnotation

from tiered import Model, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_identity"


def test_users_read_the_operand() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_a_graph_output_keeps_its_name() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { a = Relu(x) y = Identity(a) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_a_chain_goes_in_one_run() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { a = Identity(x) b = Identity(a) c = Relu(b) y = Identity(c) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_a_body_reads_the_operand_of_an_identity_above_it() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { a = Identity(x) y = If(c) <"
        "then_branch = t () => (float[2] p) { p = Relu(a) },"
        "else_branch = e () => (float[2] q) { b = Identity(a) q = Neg(b) }> }",
        "(float[2] x, bool c) => (float[2] y) { y = If(c) <"
        "then_branch = t () => (float[2] p) { p = Relu(x) },"
        "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
    )


def test_sequences_are_values_like_any_other() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, int64 i) => (float[N] y)"
        " { s = SequenceConstruct(x, x) t = Identity(s) y = SequenceAt(t, i) }",
        "(float[2] x, int64 i) => (float[N] y) { s = SequenceConstruct(x, x) y = SequenceAt(s, i) }",
    )


def test_what_was_declared_of_the_result_is_known_of_the_operand() -> None:
    model = Model.from_proto(
        parse(
            '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
            " g (float[2] x) => (float[2] y) <float[2] h> { m = d.Mystery(x) h = Identity(m) y = Relu(h) }"
        )
    )
    get_pass(PASS).apply(model)
    assert model.main.values["m"].shape == (2,)


def test_an_operand_that_is_an_output_itself_keeps_its_name_and_the_identity() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Identity(y) }",
        because="a graph output needs a node of its own",
    )


def test_an_output_that_is_an_input_needs_the_identity() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) { y = Identity(x) }",
        because="a graph output needs a node of its own",
    )


def test_issue_19_an_output_may_be_an_initializer() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) <float[2] w = {1,2}> { y = Identity(w) z = Add(x, w) }",
        "(float[2] x) => (float[2] y, float[2] z) <float[2] y = {1,2}> { z = Add(x, y) }",
    )


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x, float[2] w = {1,2}) => (float[2] y, float[2] z) { y = Identity(w) z = Neg(x) }",
        "(float[2] x) => (float[2] w, float[2] y) <float[2] w = {1,2}> { y = Identity(w) }",
    ],
)
def test_an_output_that_is_a_default_or_another_output_needs_the_identity(text: str) -> None:
    assert_unchanged(PASS, text, because="a graph output needs a node of its own")


def test_the_output_of_a_body_that_is_captured_needs_the_identity() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { a = Relu(x) y = If(c) <"
        "then_branch = t () => (float[2] p) { p = Identity(a) },"
        "else_branch = e () => (float[2] q) { q = Neg(a) }> }",
        because="a graph output needs a node of its own",
    )


def test_what_a_loop_carries_unchanged_needs_the_identity() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, int64 n, bool c) => (float[2] y) { y = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo)"
        " { co = Identity(ci) xo = Identity(xi) }> }",
        because="a graph output needs a node of its own",
    )


def test_the_output_of_a_function_that_is_its_input_needs_the_identity() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { y = d.f(x) }"
        ' <domain: "d", opset_import: ["" : 21]> f (a) => (b) { b = Identity(a) }',
        because="a graph output needs a node of its own",
    )


def test_a_value_that_an_annotation_names_stays() -> None:
    model = parse("(float[2] x) => (float[2] y) { s = Identity(x) y = Relu(s) }")
    annotation = TensorAnnotation(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    model.graph.quantization_annotation.append(annotation)
    assert_unchanged(PASS, model, because="training info or an annotation names a value here")


def test_a_range_that_was_given_a_list_of_one_number_gets_the_number() -> None:
    assert_rewrites(
        PASS,
        "(int64[N] x) => (int64[M] y) <int64 a = {0}, int64[1] b = {3}, int64 c = {1}>"
        " { l = Identity(b) r = Range(a, l, c) y = Concat<axis=0>(x, r) }",
        "(int64[N] x) => (int64[M] y) <int64 a = {0}, int64 b = {3}, int64 c = {1}>"
        " { r = Range(a, b, c) y = Concat<axis=0>(x, r) }",
    )
