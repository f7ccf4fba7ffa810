import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_neg_into_sub"


def _model(nodes: str, dtype: str = "float") -> str:
    held = [f"{dtype} {name} = {{{number}}}" for name, number in (("c", 2), ("m", -1), ("d", -2))]
    used = [each for each in held if f" {each.split()[1]}" in nodes.replace("(", " ")]
    return f"({dtype}[N] x, {dtype}[N] z) => ({dtype}[N] y) <{', '.join(used)}> {{ {nodes} }}"


@pytest.mark.parametrize("dtype", ["float", "double", "int64"])
@pytest.mark.parametrize("minus", ["Neg(h)", "Mul(h, m)", "Mul(m, h)"])
@pytest.mark.parametrize(
    ("inner", "after"),
    [
        ("Sub(x, z)", "Sub(z, x)"),
        ("Sub(x, c)", "Sub(c, x)"),
        ("Sub(c, x)", "Sub(x, c)"),
        ("Add(x, c)", "Sub(d, x)"),
        ("Add(c, x)", "Sub(d, x)"),
    ],
)
def test_minus_a_sum_is_a_difference(inner: str, after: str, minus: str, dtype: str) -> None:
    assert_rewrites(PASS, _model(f"h = {inner}  y = {minus}", dtype), _model(f"y = {after}", dtype))


def test_a_quotient_by_minus_one_is_minus_too() -> None:
    assert_rewrites(PASS, _model("h = Sub(x, z)  y = Div(h, m)"), _model("y = Sub(z, x)"))


def test_a_sign_that_is_read_stays() -> None:
    assert_unchanged(
        PASS,
        _model("h = Sub(x, z)  i = Neg(h)  y = Reciprocal(i)"),
        because="a consumer reads the sign of a zero",
    )


def test_a_factor_that_adds_dims_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, float[N] z) => (float[1,N] y) <float[1,1] m = {-1}>"
        " { h = Sub(x, z)  y = Mul(h, m) }",
        because="the factor may add dims",
    )


def test_large_constants_are_left_alone() -> None:
    def model(count: int, number: int, nodes: str) -> str:
        constant = f"float[{count}] c = {{{','.join([str(number)] * count)}}}"
        return f"(float[N,{count}] x) => (float[N,{count}] y) <{constant}> {{ {nodes} }}"

    nodes = "h = Add(x, c)  y = Neg(h)"
    assert_unchanged(PASS, model(1025, 2, nodes), because="the constant is large")
    made = model(1024, -2, "y = Sub(c, x)")
    assert_rewrites(PASS, model(1024, 2, nodes), made, runtime="none")


def test_an_unknown_dtype_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x) => (float[2] y) { y = l.f(x, x) }"
        ' <opset_import: ["" : 21], domain: "l"> f (a, b) => (d) { c = Sub(a, b)  d = Neg(c) }',
        because="the dtype of x is not known",
    )


def test_a_sum_of_two_tensors_stays() -> None:
    assert_unchanged(PASS, _model("h = Add(x, z)  y = Neg(h)"))


def test_a_difference_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, float[N] z) => (float[N] y, float[N] h) { h = Sub(x, z)  y = Neg(h) }",
        because="an inner value is a graph output",
    )
