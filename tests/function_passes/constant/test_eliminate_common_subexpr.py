import pytest
from onnx import TensorAnnotation

from tiered import get_pass, optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_common_subexpr"


def test_the_same_is_computed_once() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }",
        "(float[2] x) => (float[2] y) { a = Exp(x) y = Add(a, a) }",
    )


def test_merged_operands_make_their_consumers_equal() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y)"
        " { a = Exp(x) b = Exp(x) c = Neg(a) d = Neg(b) y = Sub(c, d) }",
        "(float[2] x) => (float[2] y) { a = Exp(x) c = Neg(a) y = Sub(c, c) }",
    )


@pytest.mark.parametrize("op", ["Add", "Mul", "Sum", "Mean"])
def test_the_order_of_two_operands_may_not_matter(op: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N] x, float[N] z) => (float[N] y) {{ a = {op}(x, z) b = {op}(z, x) y = Div(a, b) }}",
        f"(float[N] x, float[N] z) => (float[N] y) {{ a = {op}(x, z) y = Div(a, a) }}",
    )


def test_the_larger_of_two_integers_is_the_same_in_either_order() -> None:
    assert_rewrites(
        PASS,
        "(int32[N] x, int32[N] z) => (int32[N] y) { a = Max(x, z) b = Max(z, x) y = Sub(a, b) }",
        "(int32[N] x, int32[N] z) => (int32[N] y) { a = Max(x, z) y = Sub(a, a) }",
    )


@pytest.mark.parametrize("op", ["Sub", "Div", "Max", "Min", "Pow"])
def test_the_order_of_two_operands_may_matter(op: str) -> None:
    # Of 0.0 and -0.0, Max and Min may return the first.
    assert_unchanged(
        PASS,
        f"(float[N] x, float[N] z) => (float[N] y) {{ a = {op}(x, z) b = {op}(z, x) y = Div(a, b) }}",
    )


def test_a_default_may_be_written_or_not() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) { a = Softmax<axis=-1>(x) b = Softmax(x) y = Add(a, b) }",
        "(float[2,3] x) => (float[2,3] y) { a = Softmax(x) y = Add(a, a) }",
    )
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,3] y) { a = Softmax<axis=-1>(x) b = Softmax(x) y = Add(a, b) }",
        opset=11,
    )


def test_attributes_are_compared_by_value() -> None:
    shape = "<value = {0}[1] {{{1}}}>"
    before = "(int64[1] x) => (float[N] y) {{ a = ConstantOfShape{0}(x) b = ConstantOfShape{1}(x) y = Add(a, b) }}"
    one, two = shape.format("float", 1), shape.format("float", 2)
    assert_rewrites(
        PASS,
        before.format(one, one),
        f"(int64[1] x) => (float[N] y) {{ a = ConstantOfShape{one}(x) y = Add(a, a) }}",
        runtime="none",
    )
    assert_unchanged(PASS, before.format(one, two))


def test_constants_are_one_by_their_bits() -> None:
    function = '<domain: "d", opset_import: ["" : 21]> f (a) => (b)'
    header = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[2] x) => (float[2] y)'
    assert_rewrites(
        PASS,
        f"{header} {{ y = d.f(x) }} {function} {{ c = Constant<value_float=1.0>()"
        " e = Constant<value = float {1}>() h = Sub(a, c) b = Mul(h, e) }",
        f"{header} {{ y = d.f(x) }} {function}"
        " { c = Constant<value_float=1.0>() h = Sub(a, c) b = Mul(h, c) }",
    )
    assert_unchanged(
        PASS,
        f"{header} {{ y = d.f(x) }} {function} {{ c = Constant<value_float=0.0>()"
        " e = Constant<value_float=-0.0>() h = Sub(a, c) b = Mul(h, e) }",
    )


def test_absent_operands_at_the_end_may_be_written_or_not() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, float lo) => (float[N] y) { a = Clip(x, lo) b = Clip(x, lo, ) y = Add(a, b) }",
        "(float[N] x, float lo) => (float[N] y) { a = Clip(x, lo) y = Add(a, a) }",
    )


def test_an_absent_operand_is_not_its_neighbour() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, float k) => (float[N] y) { a = Clip(x, k) b = Clip(x, , k) y = Add(a, b) }",
    )


def test_outputs_that_are_read_must_be_there() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,4,4] x) => (float[1,1,2,2] y, float[1,1,2,2] z, int64[1,1,2,2] i)"
        " { y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)"
        " z, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }",
    )


def test_every_output_is_shared() -> None:
    assert_rewrites(
        PASS,
        "(float[2,4] x) => (float[2,2] y) { a, b = Split<axis=1, num_outputs=2>(x)"
        " c, d = Split<axis=1, num_outputs=2>(x) h = Add(a, d) y = Mul(h, c) }",
        "(float[2,4] x) => (float[2,2] y)"
        " { a, b = Split<axis=1, num_outputs=2>(x) h = Add(a, b) y = Mul(h, a) }",
    )


def test_two_outputs_keep_their_names() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) { y = Exp(x) z = Exp(x) }",
        "(float[2] x) => (float[2] y, float[2] z) { y = Exp(x) z = Identity(y) }",
    )


def test_an_identity_that_bears_the_name_of_an_output_is_cheap_enough() -> None:
    assert_unchanged(
        PASS, "(float[2] x) => (float[2] y, float[2] z) { y = Identity(x) z = Identity(x) }"
    )
    assert_unchanged(
        PASS,
        "(float[2] x) => (float y, float z)"
        " { y = Constant<value_float=1.0>() z = Constant<value_float=1.0>() }",
    )


@pytest.mark.parametrize("dtype", ["uint4", "int4", "float4e2m1"])
def test_outputs_of_dtypes_without_an_identity_stay(dtype: str) -> None:
    text = f"({dtype}[2,3] x) => ({dtype}[3,2] y, {dtype}[3,2] z)"
    body = "{ y = Transpose<perm=[1,0]>(x) z = Transpose<perm=[1,0]>(x) }"
    model = parse(f'<ir_version: 11, opset_import: ["" : 23]> g {text} {body}')
    assert [node.op_type for node in optimize(model, opt_level=3).graph.node] == ["Transpose"] * 2


def test_a_body_uses_values_of_outer_graphs() -> None:
    branch = "else_branch = e () => (float[2] q) { q = Neg(x) }> y = Add(r, a) }"
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { a = Exp(x) r = If(c) <"
        f"then_branch = t () => (float[2] p) {{ b = Exp(x) p = Relu(b) }}, {branch}",
        "(float[2] x, bool c) => (float[2] y) { a = Exp(x) r = If(c) <"
        f"then_branch = t () => (float[2] p) {{ p = Relu(a) }}, {branch}",
    )


def test_siblings_do_not_use_values_of_a_body() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { r = If(c) <"
        "then_branch = t () => (float[2] p) { a = Exp(x) p = Relu(a) },"
        "else_branch = e () => (float[2] q) { b = Exp(x) q = Neg(b) }> d = Sin(x) y = Add(r, d) }",
    )


def test_iterations_of_a_loop_are_distinct() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, int64 n, bool c) => (float[2] y) { y = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] p) => (bool co, float[2] r)"
        " { co = Identity(ci) s = Exp(p) t = Exp(p) r = Add(s, t) }> }",
        "(float[2] x, int64 n, bool c) => (float[2] y) { y = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] p) => (bool co, float[2] r)"
        " { co = Identity(ci) s = Exp(p) r = Add(s, s) }> }",
    )


@pytest.mark.parametrize(
    "draw",
    [
        "RandomNormal<shape=[2]>()",
        "RandomUniform<shape=[2], seed=1.0>()",
        "RandomNormalLike(x)",
        "RandomUniformLike<seed=1.0>(x)",
        "Bernoulli(x)",
        "Dropout(x, r, t)",
    ],
)
def test_two_draws_are_two_draws_even_with_one_seed(draw: str) -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float r = {0.5}, bool t = {1}>"
        f" {{ a = {draw} b = {draw} y = Sub(a, b) }}",
    )


def test_nothing_is_known_of_other_peoples_operators_and_functions() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { a = d.f(x) b = d.f(x) y = Sub(a, b) }"
        ' <domain: "d", opset_import: ["" : 21]> f (a) => (b) { b = RandomNormalLike(a) }',
    )


def test_function_parameters_may_differ() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { y = d.f<p=0.5, q=0.1>(x) }"
        ' <domain: "d", opset_import: ["" : 21]> f <p, q> (a) => (b)'
        " { c = LeakyRelu<alpha: float = @p>(a) e = LeakyRelu<alpha: float = @q>(a) b = Add(c, e) }",
    )


BRANCHES = (
    "then_branch = t{0} () => (float[2] p{0}) {{ p{0} = {1}(x) }},"
    " else_branch = e{0} () => (float[2] q{0}) {{ q{0} = Neg(x) }}"
)


def test_ifs_with_equal_branches_are_one() -> None:
    head = "(float[2] x, bool c) => (float[2] y)"
    first, second = BRANCHES.format(1, "Relu"), BRANCHES.format(2, "Relu")
    assert_rewrites(
        PASS,
        f"{head} {{ a = If(c) <{first}> b = If(c) <{second}> y = Add(a, b) }}",
        f"{head} {{ a = If(c) <{first}> y = Add(a, a) }}",
    )


def test_branches_that_become_equal_are_one() -> None:
    head = "(float[2] x, bool c) => (float[2] y)"
    then = "then_branch = t{0} () => (float[2] p{0}) {{ {1} p{0} = Add(u{0}, v{0}) }}"
    last = "else_branch = e{0} () => (float[2] q{0}) {{ q{0} = Neg(x) }}"
    twice = ", ".join((then, last)).format(1, "u1 = Exp(x) v1 = Exp(x)")
    once = ", ".join((then, last)).format(2, "u2 = Exp(x)").replace("v2", "u2")
    assert_rewrites(
        PASS,
        f"{head} {{ a = If(c) <{twice}> b = If(c) <{once}> y = Add(a, b) }}",
        f"{head} {{ a = If(c) <{once}> y = Add(a, a) }}",
    )


def test_loops_with_equal_bodies_are_one() -> None:
    head = "(float[2] x, int64 n) => (float[2] y) <bool k = {1}>"
    body = (
        "body = l{0} (int64 i{0}, bool ci{0}, float[2] s{0}) => (bool co{0}, float[2] r{0})"
        " {{ co{0} = Identity(ci{0}) r{0} = Mul(s{0}, x) }}"
    )
    assert_rewrites(
        PASS,
        f"{head} {{ a = Loop(n, k, x) <{body.format(1)}> b = Loop(n, k, x) <{body.format(2)}>"
        " y = Add(a, b) }",
        f"{head} {{ a = Loop(n, k, x) <{body.format(1)}> y = Add(a, a) }}",
    )


@pytest.mark.parametrize("other", ["Abs", "RandomNormalLike", "own.Unknown"])
def test_ifs_with_other_branches_stay(other: str) -> None:
    first = BRANCHES.format(1, "RandomNormalLike" if other == "RandomNormalLike" else "Relu")
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[2] x, bool c) => (float[2] y)'
        f" {{ a = If(c) <{first}> b = If(c) <{BRANCHES.format(2, other)}> y = Add(a, b) }}",
    )


def test_ifs_that_declare_other_types_or_have_marks_stay() -> None:
    first, second = BRANCHES.format(1, "Relu"), BRANCHES.format(2, "Relu")
    text = (
        "(float[2] x, bool c) => (float[2] y)"
        f" {{ a = If(c) <{first}> b = If(c) <{second}> y = Add(a, b) }}"
    )
    assert_unchanged(PASS, text.replace("float[2] q2", "float[N] q2"))
    model = parse(text)
    model.graph.node[1].attribute[0].g.node[0].metadata_props.add(key="tiered.device", value="gpu")
    assert_unchanged(PASS, model)


def test_a_value_that_an_annotation_names_stays() -> None:
    model = parse("(float x) => (float y) { a = Exp(x) b = Exp(x) y = Add(a, b) }")
    annotation = TensorAnnotation(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    model.graph.quantization_annotation.append(annotation)
    assert_unchanged(PASS, model)


def test_copies_that_are_computed_again_stay_apart() -> None:
    model = parse("(float x) => (float y) { a = Exp(x) b = Exp(x) c = Exp(x) d = Sum(a, b, c) "
                  "y = Neg(d) }")  # fmt: skip
    for node, mark in zip(model.graph.node[1:3], "12", strict=True):
        node.metadata_props.add(key="tiered.recomputed", value=mark)
    assert_unchanged(PASS, model)
    model.graph.node[2].metadata_props[0].value = "1"
    made = get_pass(PASS).apply(model)
    assert [node.op_type for node in made.graph.node] == ["Exp", "Exp", "Sum", "Neg"]


def test_overridable_initializers_are_inputs_like_any_other() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] a = {1,2}, float[2] b = {1,2}) => (float[2] y)"
        " { h = Add(x, a) k = Add(x, b) y = Mul(h, k) }",
    )


def test_issue_40_a_body_uses_what_the_order_has_after_its_owner() -> None:
    body = (
        "y = Loop(n, c, x) <body = b (int64 i, bool g, float[2,2] s) => (bool h, float[2,2] r)"
        " { h = Identity(g) NODES }>"
    )
    head = (
        "(float[2,2] x, float[2,2] w) => (float[2,2] y, float[2,2] z) <int64 n = {2}, bool c = {1}>"
    )
    assert_rewrites(
        PASS,
        f"{head} {{ {body.replace('NODES', 't = Transpose<perm=[1,0]>(w) r = Add(s, t)')}"
        " u = Transpose<perm=[1,0]>(w) z = Neg(u) }",
        f"{head} {{ u = Transpose<perm=[1,0]>(w) {body.replace('NODES', 'r = Add(s, u)')} z = Neg(u) }}",
    )
