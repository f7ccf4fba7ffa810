import numpy as np
import pytest

from tiered import Model, get_pass, optimize
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_zero_addend"


@pytest.mark.parametrize(
    ("dtype", "call", "zero"),
    [
        ("float", "Add(x, z)", "float z = {0}"),
        ("float", "Add(z, x)", "float[1,3] z = {0,-0.0,0}"),
        ("float", "Sub(x, z)", "float z = {-0.0}"),
        ("double", "Add(x, z)", "double[1] z = {0}"),
        ("float16", "Add(x, z)", "float16 z = {0}"),
        ("int32", "Add(x, z)", "int32 z = {0}"),
    ],
)
def test_a_zero_adds_nothing(dtype: str, call: str, zero: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[N,3] x) => ({dtype}[3,N] y) <{zero}> {{ h = {call}  y = Transpose(h) }}",
        f"({dtype}[N,3] x) => ({dtype}[3,N] y) {{ y = Transpose(x) }}",
    )


def test_bfloat16_has_zeros_too() -> None:
    assert_rewrites(
        PASS,
        "(bfloat16[3] x) => (bfloat16[3] y) <bfloat16 z = {0}> { h = Add(x, z)  y = Transpose(h) }",
        "(bfloat16[3] x) => (bfloat16[3] y) { y = Transpose(x) }",
        runtime="none",
    )


def test_a_zero_that_makes_x_larger_is_left_alone() -> None:
    for x, zero in (("3", "float[2,1] z = {0,0}"), ("N", "float[3] z = {0,0,0}")):
        assert_unchanged(
            PASS,
            f"(float[{x}] x) => (float[A,B] y) <{zero}, int64[2] s = {{1,-1}}>"
            " { h = Add(x, z)  y = Reshape(h, s) }",
            because="the zero may make x larger",
        )


@pytest.mark.parametrize("zero", ["float z = {0}", "float[1,1] z = {-0.0}"])
def test_x_taken_away_from_zero_is_its_negative(zero: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,N] x) => (float[2,N] y) <{zero}> {{ y = Sub(z, x) }}",
        "(float[2,N] x) => (float[2,N] y) { y = Neg(x) }",
    )


def test_unsigned_integers_have_no_negative() -> None:
    assert_unchanged(
        PASS,
        "(uint32[3] x) => (uint32[3] y) <uint32 z = {0}> { y = Sub(z, x) }",
        because="not all integers have a negative",
    )


def test_a_zero_minus_x_that_is_larger_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[2,3] y) <float[2,1] z = {0,0}> { y = Sub(z, x) }",
        because="the zero may make x larger",
    )


def test_one_over_zero_minus_x_keeps_its_sign() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[3] y) <float z = {0}> { h = Sub(z, x) y = Reciprocal(h) }",
        because="a consumer reads the sign of a zero",
    )


def test_other_numbers_are_left_alone() -> None:
    for number in ("0, 1e-45, 0", "0, 1, 0", "1, 0, 0"):
        assert_unchanged(
            PASS,
            f"(float[3] x) => (float[3] y) <float[3] z = {{{number}}}> {{ y = Add(x, z) }}",
        )


def test_signs_of_zeros_stay_up_to_level_2() -> None:
    text = "(float[3] x) => (float[3] y) <float z = {0}> { h = Add(x, z)  y = Relu(h) }"
    assert len(optimize(parse(text), opt_level=2).graph.node) == 2
    assert len(optimize(parse(text), opt_level=3).graph.node) == 1


@pytest.mark.parametrize(
    ("nodes", "is_read"),
    [
        ("y = Div(o, h)", True),
        ("y = Reciprocal(h)", True),
        ("y = Pow(h, o)", False),
        ("y = Pow(h, minus)", True),
        ("y = Pow(h, o2)", True),
        ("a = Transpose(h) b = Sqrt(a) y = Reciprocal(b)", True),
        ("a = MatMul(h, h) b = Relu(a) y = Div(h, b)", True),
        ("y = Div(h, o)", False),
        ("a = Exp(h) y = Reciprocal(a)", False),
        ("a = Mul(h, h) y = Reciprocal(a)", False),
        ("a = Add(h, o) y = Reciprocal(a)", False),
        ("a = Clip(h, o) y = Div(h, a)", False),
        ("a = Pow(h, two) y = Div(h, a)", False),
        ("y = Foo.Bar(h)", True),
        ("a = Greater(h, o) y = Cast<to=1>(a)", False),
        ("a = Cast<to=8>(h) y = Cast<to=1>(a)", True),
    ],
)
def test_issue_40_a_zero_stays_where_its_sign_is_read(nodes: str, is_read: bool) -> None:
    text = (
        "(float[3,3] x, float o2) => (float[3,3] y) <float z = {0}, float o = {1},"
        f" float minus = {{-1}}, float two = {{2}}> {{ h = Add(x, z) {nodes} }}"
    )
    if "Foo" in nodes:
        imports = '<ir_version: 10, opset_import: ["" : 21, "Foo" : 1]>'
        text = f"{imports} g {text}"
    if is_read:
        assert_unchanged(PASS, text, because="a consumer reads the sign of a zero")
        return
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    assert model.main.value("h") is None


@pytest.mark.parametrize(
    ("first", "result", "last"),
    [
        ("v", "Div(s, h)", "Neg(q)"),
        ("h", "Reciprocal(s)", "Neg(q)"),
        ("v", "Add(s, h)", "Reciprocal(q)"),
        ("h", "Neg(s)", "Reciprocal(q)"),
    ],
)
def test_issue_40_bodies_read_signs_and_pass_them_on(first: str, result: str, last: str) -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] v) => (float[2] y) <float z = {0}, int64 n = {2}, bool c = {1}>"
        f" {{ h = Add(x, z) q = Loop(n, c, {first}) <body = b (int64 i, bool g, float[2] s)"
        f" => (bool k, float[2] r) {{ k = Identity(g) r = {result} }}> y = {last} }}",
        because="a consumer reads the sign of a zero",
    )


def test_issue_40_one_over_x_plus_zero_is_the_same_infinity() -> None:
    text = "(float[2] x) => (float[2] y) <float z = {0}, float o = {1}> { a = Add(x, z) y = Div(o, a) }"
    feeds = {"x": np.array([-0.0, 0.0], np.float32)}
    for level in range(5):
        assert run(optimize(parse(text), opt_level=level), feeds)["y"].tolist() == [np.inf, np.inf]


@pytest.mark.filterwarnings("error")
def test_a_power_that_is_not_finite_is_no_warning() -> None:
    text = """(float[3] x) => (float[3] y) <float z = {0}, float p = {inf}> {
        h = Add(x, z)  q = Pow(h, p)  y = Reciprocal(q) }"""
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    assert [node.op_type for node in model.main.nodes] == ["Pow", "Reciprocal"]
