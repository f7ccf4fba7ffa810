import pytest

from tiered import Model, get_pass
from tiered.support.numerics import Numerics
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "canonicalize_ops"


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_a_constant_becomes_the_second_operand(op: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2] x) => (float[2] y) <float c = {{3}}> {{ y = {op}(c, x) }}",
        f"(float[2] x) => (float[2] y) <float c = {{3}}> {{ y = {op}(x, c) }}",
    )


def test_masks_commute_too() -> None:
    assert_rewrites(
        PASS,
        "(bool[2] x) => (bool[2] y) <bool[2] c = {1,0}> { y = And(c, x) }",
        "(bool[2] x) => (bool[2] y) <bool[2] c = {1,0}> { y = And(x, c) }",
    )


@pytest.mark.parametrize("op", ["Sub", "Max", "Min", "Pow"])
def test_operators_that_depend_on_operand_order_stay(op: str) -> None:
    assert_unchanged(PASS, f"(float[2] x) => (float[2] y) <float c = {{3}}> {{ y = {op}(c, x) }}")


def test_an_overridable_initializer_is_not_constant() -> None:
    assert_unchanged(PASS, "(float[2] x, float[2] c = {1,2}) => (float[2] y) { y = Add(c, x) }")


@pytest.mark.parametrize("opset", [7, 8, 21])
def test_a_sum_of_two_is_an_add(opset: int) -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Sum(x, z) }",
        "(float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Add(x, z) }",
        opset=opset,
    )


def test_a_sum_of_three_stays() -> None:
    assert_unchanged(PASS, "(float[2] x, float[2] z) => (float[2] y) { y = Sum(x, z, x) }")


def test_a_transpose_gets_an_explicit_perm() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N,4] x) => (float[4,N,2] y) { y = Transpose(x) }",
        "(float[2,N,4] x) => (float[4,N,2] y) { y = Transpose<perm=[2,1,0]>(x) }",
    )


def test_the_permutation_is_unknown_without_a_rank() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[n] s) => (y) { t = Reshape(x, s) y = Transpose(t) }",
        because="the rank of x is not known",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Conv<pads=[1,1]>(x, w, b)", "p = Conv<pads=[1,1]>(x, w) r = Reshape(b, c) y = Add(p, r)"),
        ("ConvTranspose(x, w, b)", "p = ConvTranspose(x, w) r = Reshape(b, c) y = Add(p, r)"),
    ],
)
def test_a_bias_is_split_on_demand(before: str, after: str) -> None:
    head = "(float[1,2,5] x, float[2,2,3] w, float[2] b) => (float[1,2,L] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = {before} }}",
        f"{head} <int64[2] c = {{-1,1}}> {{ {after} }}",
        bias="split",
    )
    assert_unchanged(PASS, f"{head} {{ y = {before} }}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Gemm<transB=1>(x, w, b)", "p = Gemm<transB=1>(x, w) y = Add(p, b)"),
        (
            "Gemm<beta=2.0,alpha=3.0>(x, w, b)",
            "p = Gemm<alpha=3.0>(x, w) q = Mul(b, t) y = Add(p, q)",
        ),
    ],
)
def test_the_bias_of_a_product_is_split(before: str, after: str) -> None:
    head = "(float[2,2] x, float[2,2] w, float[2] b) => (float[2,2] y)"
    constants = "<float t = {2}>" if "Mul" in after else ""
    assert_rewrites(
        PASS,
        f"{head} {{ y = {before} }}",
        f"{head} {constants} {{ {after} }}",
        bias="split",
    )


def test_the_mode_is_reassociating() -> None:
    assert get_pass(PASS, bias="split").info.numerics is Numerics.REASSOCIATING
    assert get_pass(PASS).info.numerics is Numerics.EXACT


def test_a_bias_of_an_image_of_unknown_rank_stays() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[1,2,5] x, float[2,2,3] w, '
        "float[2] b) => (float[1,2,3] y) { a = own.A(x) y = Conv(a, w, b) }",
        because="the rank of the image is not known",
        bias="split",
    )


@pytest.mark.parametrize(
    ("call", "because", "opset"),
    [
        ("Gemm<beta=0.0>(x, w, b)", "beta is 0, which hides NaN of the bias", 21),
        ("Gemm(x, w, b)", "Gemm needs a bias before opset 11", 10),
    ],
)
def test_a_bias_that_cannot_be_split_stays(call: str, because: str, opset: int) -> None:
    assert_unchanged(
        PASS,
        f"(float[2,2] x, float[2,2] w, float[2] b) => (float[2,2] y) {{ y = {call} }}",
        because=because,
        opset=opset,
        bias="split",
    )


def test_a_scale_of_integers_stays() -> None:
    assert_unchanged(
        PASS,
        "(int32[2,2] x, int32[2,2] w, int32[2] b) => (int32[2,2] y) "
        "{ y = Gemm<beta=0.5>(x, w, b) }",
        because="beta scales a bias that is not float",
        bias="split",
    )


def test_a_bias_of_a_function_parameter_stays() -> None:
    assert_unchanged(
        PASS,
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,2] x, float[2,2] w, float[2] b) => (float[2,2] y)
        { y = own.F<beta = 2.0>(x, w, b) }
        <domain: "own", opset_import: ["" : 21]> F <beta> (x, w, b) => (y)
        { y = Gemm<beta : float = @beta>(x, w, b) }""",
        because="attribute 'beta' is a function parameter",
        bias="split",
    )


def test_an_add_has_the_name_of_the_sum() -> None:
    for name, expected in [("", "Add"), ("pick", "pick_1")]:
        proto = parse("(float[2] a, float[2] b) => (float[2] y) { y = Sum(a, b) }")
        proto.graph.node[0].name = name
        model = Model.from_proto(proto)
        get_pass(PASS).apply(model)
        assert [node.name for node in model.main.nodes] == [expected]
