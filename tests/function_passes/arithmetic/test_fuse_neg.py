import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_neg"
X = "(float[2] x) => (float[2] y) "
XZ = "(float[2] x, float[2] z) => (float[2] y) "


@pytest.mark.parametrize("product", ["Mul(x, c)", "Mul(c, x)", "Div(x, c)", "Div(c, x)"])
def test_a_minus_goes_into_the_constant_of_a_product(product: str) -> None:
    assert_rewrites(
        PASS,
        X + f"<float c = {{3}}> {{ h = {product}  y = Neg(h) }}",
        X + f"<float c = {{-3}}> {{ y = {product} }}",
    )


@pytest.mark.parametrize("product", ["Mul(h, c)", "Mul(c, h)", "Div(h, c)", "Div(c, h)"])
def test_a_minus_of_an_operand_does_too(product: str) -> None:
    assert_rewrites(
        PASS,
        X + f"<float c = {{3}}> {{ h = Neg(x)  y = {product} }}",
        X + f"<float c = {{-3}}> {{ y = {product.replace('h', 'x')} }}",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [("Add(h, z)", "Sub(z, x)"), ("Add(z, h)", "Sub(z, x)"), ("Sub(z, h)", "Add(z, x)"),
     ("Mul(h, h)", "Mul(x, x)"), ("Div(h, h)", "Div(x, x)")],
)  # fmt: skip
@pytest.mark.parametrize("minus", ["Neg(x)", "Mul(x, m)", "Mul(m, x)", "Div(x, m)", "Sub(o, x)"])
def test_a_sum_with_a_minus_is_a_difference(before: str, after: str, minus: str) -> None:
    held = {"m": "<float m = {-1}> ", "o": "<float o = {-0.0}> "}
    held_text = next((text for name, text in held.items() if name in minus), "")
    assert_rewrites(
        PASS, XZ + f"{held_text}{{ h = {minus}  y = {before} }}", XZ + f"{{ y = {after} }}"
    )


def test_integers_wrap_in_products_and_sums() -> None:
    assert_rewrites(
        PASS,
        "(int32[2] x) => (int32[2] y) <int32 c = {3}> { h = Neg(x)  y = Mul(h, c) }",
        "(int32[2] x) => (int32[2] y) <int32 c = {-3}> { y = Mul(x, c) }",
    )


def test_a_minus_of_zero_is_another_one() -> None:
    assert_unchanged(PASS, XZ + "<float o = {0}> { h = Sub(o, x)  y = Add(h, z) }")
    assert_unchanged(PASS, XZ + "<float o = {2}> { h = Mul(x, o)  y = Add(h, z) }")


def test_a_constant_that_enlarges_the_result_is_no_minus() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[3,2] z) => (float[3,2] y) <float[3,1] m = {-1,-1,-1}>"
        " { h = Mul(x, m)  y = Add(h, z) }",
    )


def test_a_minus_of_two_operands_needs_a_constant() -> None:
    assert_unchanged(
        PASS, XZ + "{ h = Neg(x)  y = Mul(h, z) }", because="the other operand is no small constant"
    )


def test_a_product_of_two_values_stays() -> None:
    assert_unchanged(
        PASS,
        XZ + "{ h = Mul(x, z)  y = Neg(h) }",
        because="no operand of the product is a small constant",
    )


def test_a_product_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) <float c = {3}>"
        " { h = Mul(x, c)  y = Neg(h)  z = Exp(h) }",
        because="the product has other consumers",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [("<int32 c = {3}> { h = Neg(x)  y = Div(h, c) }", "a quotient of integers may overflow"),
     ("<int32 c = {3}> { h = Div(x, c)  y = Neg(h) }",
      "the negative of a quotient of integers may overflow")],
)  # fmt: skip
def test_integers_that_may_overflow_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, "(int32[2] x) => (int32[2] y) " + text, because=because)


@pytest.mark.parametrize(
    ("first", "second"),
    [("Mul(g, m)", "Neg(h)"), ("Neg(g)", "Div(h, m)"), ("Neg(g)", "Mul(m, h)")],
)
def test_the_minus_of_a_minus_is_the_value(first: str, second: str) -> None:
    assert_rewrites(
        PASS,
        X + f"<float m = {{-1}}> {{ g = Relu(x)  h = {first}  y = {second} }}",
        X + "{ y = Relu(x) }",
    )


def test_a_difference_from_minus_zero_is_a_minus() -> None:
    assert_rewrites(PASS, X + "<float o = {-0.0}> { y = Sub(o, x) }", X + "{ y = Neg(x) }")


def test_an_operand_may_be_a_later_output_of_a_node_without_its_first() -> None:
    assert_unchanged(
        PASS,
        "(float[3,2,4] x, float[1,4,4] w, float[1,4,4] r) => (float[1,2,4] y)"
        ' { "", h = RNN<hidden_size=4>(x, w, r) y = Add(h, h) }',
    )


@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_a_constant_taken_from_minus_x(dtype: str) -> None:
    head = f"({dtype}[N] x) => ({dtype}[N] y)"
    assert_rewrites(
        PASS,
        f"{head} <{dtype} c = {{2}}> {{ h = Neg(x)  y = Sub(h, c) }}",
        f"{head} <{dtype} c = {{-2}}> {{ y = Sub(c, x) }}",
    )


def test_a_zero_taken_from_minus_x_stays() -> None:
    for zero in ("0", "-0.0"):
        assert_unchanged(
            PASS,
            f"(float[N] x) => (float[N] y) <float c = {{{zero}}}> {{ h = Neg(x)  y = Sub(h, c) }}",
        )


@pytest.mark.parametrize("nodes", ["h = Neg(z)  y = Add<axis=0, broadcast=1>(x, h)",
                                   "g = Neg(x)  h = Neg(z)  y = Mul<axis=0, broadcast=1>(g, h)"])  # fmt: skip
def test_before_opset_7_operands_broadcast_by_other_rules(nodes: str) -> None:
    assert_unchanged(PASS, f"(float[2,3] x, float[2] z) => (float[2,3] y) {{ {nodes} }}", opset=6)


def test_a_constant_of_more_than_1024_numbers_keeps_its_sign() -> None:
    def model(count: int, number: int, nodes: str) -> str:
        constant = f"float[{count}] c = {{{','.join([str(number)] * count)}}}"
        return f"(float[{count}] x) => (float[{count}] y) <{constant}> {{ {nodes} }}"

    nodes = "h = Mul(x, c)  y = Neg(h)"
    assert_rewrites(PASS, model(1024, 3, nodes), model(1024, -3, "y = Mul(x, c)"), runtime="none")
    because = "no operand of the product is a small constant"
    assert_unchanged(PASS, model(1025, 3, nodes), because=because)
