import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_reshape_around_elementwise"
SHAPES = "int64[2] flat = {6,4}, int64[3] deep = {2,3,4}"


def test_a_round_trip_of_reshapes_is_dropped() -> None:
    assert_rewrites(
        PASS,
        f"(float[6,4] x) => (float[6,4] y) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Relu(a) c = Reshape(b, flat) y = Neg(c) }",
        "(float[6,4] x) => (float[6,4] y) { b = Relu(x) y = Neg(b) }",
    )


@pytest.mark.parametrize(
    ("enter", "leave"),
    [
        ("Squeeze(x, one)", "Unsqueeze(b, one)"),
        ("Squeeze(x, one)", "Reshape(b, deep)"),
        ("Reshape(x, flat)", "Unsqueeze(b, one)"),
    ],
)
def test_other_views_are_dropped(enter: str, leave: str) -> None:
    constants = "int64[1] one = {1}, int64[2] flat = {6,4}, int64[3] deep = {6,1,4}"
    used = ", ".join(
        each for each in constants.replace(", ", ";").split(";") if each.split()[1] in enter + leave
    )
    assert_rewrites(
        PASS,
        f"(float[6,1,4] x) => (float[6,1,4] y) <{used}, float k = {{3}}>"
        f" {{ a = {enter} b = Mul(a, k) y = {leave} }}",
        "(float[6,1,4] x) => (float[6,1,4] y) <float k = {3}> { y = Mul(x, k) }",
    )


def test_a_flatten_is_a_view() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3,4] x) => (float[2,3,4] y) <int64[3] deep = {2,3,4}>"
        " { a = Flatten<axis=2>(x) b = Relu(a) y = Reshape(b, deep) }",
        "(float[2,3,4] x) => (float[2,3,4] y) { y = Relu(x) }",
    )


def test_one_number_is_computed_in_the_shape_that_is_read() -> None:
    """Exporters add sizes as scalars: the size of the past and that of the new tokens."""
    assert_rewrites(
        PASS,
        "(int64[1] x, int64 z) => (int64[1] y) <int64[1] flat = {-1}>"
        " { a = Squeeze(x)  b = Add(a, z)  y = Reshape(b, flat) }",
        "(int64[1] x, int64 z) => (int64[1] y) { y = Add(x, z) }",
    )
    assert_rewrites(
        PASS,
        "(int64[1] x, int64[1] z) => (int64[1] y) <int64[1] flat = {-1}>"
        " { a = Squeeze(x)  c = Squeeze(z)  b = Add(a, c)  y = Reshape(b, flat) }",
        "(int64[1] x, int64[1] z) => (int64[1] y) { y = Add(x, z) }",
    )


def test_a_number_of_another_shape_keeps_its_view() -> None:
    assert_rewrites(
        PASS,
        "(int64[1] x, int64[1,1] z) => (int64[1] y) <int64[1] flat = {-1}>"
        " { a = Squeeze(x)  c = Squeeze(z)  b = Add(a, c)  y = Reshape(b, flat) }",
        "(int64[1] x, int64[1,1] z) => (int64[1] y) { c = Squeeze(z)  y = Add(x, c) }",
    )


def test_all_operators_between_move_with_their_scalars() -> None:
    assert_rewrites(
        PASS,
        f"(float[6,4] x) => (float[6,4] y) <{SHAPES}, float k = {{3}}, float[1,1] h = {{0.5}}>"
        " { a = Reshape(x, deep) b = Mul(a, k) c = Erf(b) d = Add(c, h) e = Mul(a, d)"
        " y = Reshape(e, flat) }",
        "(float[6,4] x) => (float[6,4] y) <float k = {3}, float[1,1] h = {0.5}>"
        " { b = Mul(x, k) c = Erf(b) d = Add(c, h) y = Mul(x, d) }",
    )


def test_several_ways_in_and_out() -> None:
    assert_rewrites(
        PASS,
        f"(float[6,4] x, float[6,4] z) => (float[6,4] y, float[6,4] w) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Reshape(z, deep) c = Add(a, b) y = Reshape(c, flat)"
        " d = Neg(c) w = Reshape(d, flat) }",
        "(float[6,4] x, float[6,4] z) => (float[6,4] y, float[6,4] w) { y = Add(x, z) w = Neg(y) }",
    )


def test_dims_without_a_size_are_the_same_by_name() -> None:
    assert_rewrites(
        PASS,
        "(float[N,12] x) => (float[N,12] y)"
        " <int64[3] deep = {0,3,4}, int64[2] flat = {0,-1}>"
        " { a = Reshape(x, deep) b = Relu(a) y = Reshape(b, flat) }",
        "(float[N,12] x) => (float[N,12] y) { y = Relu(x) }",
    )


def test_a_reshape_with_other_consumers_stays() -> None:
    assert_rewrites(
        PASS,
        f"(float[6,4] x) => (float[6,4] y, float[2,3,4] a) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Relu(a) y = Reshape(b, flat) }",
        "(float[6,4] x) => (float[6,4] y, float[2,3,4] a) <int64[3] deep = {2,3,4}>"
        " { a = Reshape(x, deep) y = Relu(x) }",
    )


def test_in_old_opsets_attributes_go_along() -> None:
    assert_rewrites(
        PASS,
        f"(float[6,4] x) => (float[6,4] y) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Clip<min=0.0, max=6.0>(a) y = Reshape(b, flat) }",
        "(float[6,4] x) => (float[6,4] y) { y = Clip<min=0.0, max=6.0>(x) }",
        opset=9,
    )


@pytest.mark.parametrize(
    ("between", "because"),
    [
        ("b = Add(a, row)", "it is computed from another shape"),
        ("b = Add(a, whole)", "it is computed from another shape"),
        ("b = Mul(many, a)", "it is computed from another shape"),
        ("s = Softmax(a) b = Relu(s)", "it is computed from another shape"),
        ("s = Relu(a) b = Neg(s) u = Softmax(s)", "an intermediate value has other consumers"),
    ],
)
def test_operators_that_need_the_intermediate_shape_keep_it(between: str, because: str) -> None:
    assert_unchanged(
        PASS,
        "(float[6,4] x, float[2,3,4] whole) => (float[6,4] y)"
        f" <{SHAPES}, float[4] row = {{1,2,3,4}}, float[1,1,1,1] many = {{2}}>"
        f" {{ a = Reshape(x, deep) {between} y = Reshape(b, flat) }}",
        because=because,
    )


def test_an_inner_result_that_is_an_output_stays() -> None:
    assert_unchanged(
        PASS,
        f"(float[6,4] x) => (float[6,4] y, float[2,3,4] b) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Relu(a) y = Reshape(b, flat) }",
        because="an intermediate value is an output or pinned",
    )


def test_a_reshape_that_reads_it_as_its_shape_is_no_way_out() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2] v, int64[2] z) => (int64[1,2] y, int64[1,2] w)"
        " <int64[1] two = {2}, int64[2] flat = {1,2}, int64 one = {1}> { sh = Shape(v)"
        " x = Reshape(sh, flat) s = Reshape(x, two) t = Mul(s, one) y = Reshape(t, flat)"
        " w = Reshape(z, t) }",
        because="an intermediate value has other consumers",
    )


def test_numbers_alone_that_are_computed_between_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[1] x) => (float[1,1] y) <int64[2] deep = {1,1}> { a = Relu(x) y = Reshape(a, deep) }",
        because="no input comes from a Reshape",
    )


def test_repeated_operands_between_the_reshapes_keep_their_shape() -> None:
    assert_unchanged(
        PASS,
        f"(float[6,4] x, float[4] z) => (float[6,4] y) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Relu(z) c = Add(a, b) y = Reshape(c, flat) }",
        because="an intermediate operator changes the shape",
    )


def test_another_shape_than_before_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[6,4] x) => (float[4,6] y) <int64[3] deep = {2,3,4}, int64[2] other = {4,6}>"
        " { a = Reshape(x, deep) b = Relu(a) y = Reshape(b, other) }",
        because="it is computed from another shape",
    )


def test_a_shape_that_is_not_known_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N,M] x, int64[K] s) => (float y) <int64[1] flat = {-1}>"
        " { a = Reshape(x, flat) b = Relu(a) z = Reshape(b, s) y = Neg(z) }",
        because="a shape is not known",
    )


def test_a_result_that_a_body_reads_stays() -> None:
    assert_unchanged(
        PASS,
        f"(float[6,4] x, bool c) => (float[6,4] y, float[2,3,4] z) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Relu(a) y = Reshape(b, flat) z = If(c) <"
        "then_branch = t () => (float[2,3,4] p) { p = Neg(b) },"
        " else_branch = e () => (float[2,3,4] q) { q = Abs(b) }> }",
        because="a body reads an intermediate value",
    )


def test_before_opset_7_operands_broadcast_by_other_rules() -> None:
    assert_unchanged(
        PASS,
        f"(float[6,4] x) => (float[6,4] y) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Relu(a) y = Reshape(b, flat) }",
        opset=6,
    )


def test_function_parameters_are_unknown() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[6,4] x) => (float[6,4] y) { y = d.f<k=0.5>(x) }"
        ' <domain: "d", opset_import: ["" : 21]> f <k> (z) => (y)'
        " <float[6,4] x, float[2,3,4] a, float[2,3,4] b, float[6,4] y> {"
        " x = Constant<value = float[6,4] {1,2,3,4,5,6,1,2,3,4,5,6,1,2,3,4,5,6,1,2,3,4,5,6}>()"
        " deep = Constant<value = int64[3] {2,3,4}>() flat = Constant<value = int64[2] {6,4}>()"
        " a = Reshape(x, deep) b = LeakyRelu<alpha: float = @k>(a) y = Reshape(b, flat) }",
        because="an intermediate operator changes the shape",
    )


def test_more_operators_than_are_looked_at_stay() -> None:
    chain = " ".join(f"v{at + 1} = Neg(v{at})" for at in range(70))
    assert_unchanged(
        PASS,
        f"(float[6,4] x) => (float[6,4] y) <{SHAPES}>"
        f" {{ v0 = Reshape(x, deep) {chain} y = Reshape(v70, flat) }}",
        because="there are too many operators between",
    )


def test_a_view_in_a_body_is_no_way_out() -> None:
    assert_unchanged(
        PASS,
        f"(float[6,4] x, bool c) => (float[6,4] y, float[6,4] z) <{SHAPES}>"
        " { a = Reshape(x, deep) b = Relu(a) y = Reshape(b, flat) z = If(c) <"
        "then_branch = t () => (float[6,4] p) { p = Reshape(b, flat) },"
        " else_branch = e () => (float[6,4] q) { r = Reshape(b, flat) q = Neg(r) }> }",
        because="a body reads an intermediate value",
    )
