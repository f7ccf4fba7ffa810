import pytest

from tiered.graph.queries.op_traits import REDUCTIONS
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_reshape_before_reduce"


def _model(nodes: str, result: str = "float y", constants: str = "") -> str:
    return f"(float[2,N,3] x) => ({result}) <{constants}> {{ {nodes} }}"


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_all_elements_are_reduced_as_they_are(kind: str) -> None:
    assert_rewrites(
        PASS,
        _model(f"h = Flatten<axis=2>(x)  y = {kind}<keepdims=0>(h)"),
        _model(f"y = {kind}<keepdims=0>(x)"),
    )


@pytest.mark.parametrize(
    ("moved", "constants"),
    [
        ("Reshape(x, s)", "int64[1] s = {-1}"),
        ("Unsqueeze(x, s)", "int64[1] s = {1}"),
        ("Transpose<perm=[2,0,1]>(x)", ""),
        ("Flatten(x)", ""),
    ],
)
def test_views_and_permutations_do_not_count(moved: str, constants: str) -> None:
    assert_rewrites(
        PASS,
        _model(f"h = {moved}  y = ReduceMax<keepdims=0>(h)", constants=constants),
        _model("y = ReduceMax<keepdims=0>(x)"),
    )


def test_a_squeeze_does_not_count() -> None:
    assert_rewrites(
        PASS,
        "(float[1,N] x) => (float y) <int64[1] s = {0}>"
        " { h = Squeeze(x, s)  y = ReduceSum<keepdims=0>(h, s) }",
        "(float[1,N] x) => (float y) { y = ReduceSum<keepdims=0>(x) }",
    )


def test_all_axes_may_be_named() -> None:
    assert_rewrites(
        PASS,
        _model(
            "h = Transpose<perm=[2,0,1]>(x)  y = ReduceSum(h, a)",
            "float[1,1,1] y",
            "int64[3] a = {0,-1,1}",
        ),
        _model("y = ReduceSum(x)", "float[1,1,1] y"),
    )


def test_old_opsets_have_axes_as_an_attribute() -> None:
    assert_rewrites(
        PASS,
        _model("h = Flatten(x)  y = ReduceSum<axes=[0,1], keepdims=0>(h)"),
        _model("y = ReduceSum<keepdims=0>(x)"),
        opset=12,
    )


def test_some_axes_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        _model("h = Flatten(x)  y = ReduceSum<keepdims=0>(h, a)", "float[2] y", "int64[1] a = {1}"),
        because="it does not reduce all dims",
    )


def test_dims_that_are_kept_are_those_of_the_reshape() -> None:
    assert_unchanged(
        PASS,
        _model("h = Flatten(x)  y = ReduceSum(h)", "float[1,1] y"),
        because="the result has the rank of the Reshape",
    )


def test_no_axes_may_reduce_nothing() -> None:
    assert_unchanged(
        PASS,
        _model("h = Flatten(x)  y = ReduceSum<noop_with_empty_axes=1>(h)", "float[2,M] y"),
        because="empty axes reduce nothing",
    )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,N,3] x, int64[1] a) => (float[A,B] y) { h = Flatten(x)  y = ReduceSum(h, a) }",
        because="axes is not a constant",
    )


def test_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,N,3] x, int64[M] s) => (float y) { h = Reshape(x, s)  y = ReduceSum<keepdims=0>(h) }",
        because="a rank is not known",
    )


def test_a_reshape_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        _model("h = Flatten(x)  y = ReduceSum<keepdims=0>(h)", "float y, float[2,M] h"),
        because="an inner value is a graph output",
    )


def test_named_axes_are_reduced_even_if_empty_ones_were_not() -> None:
    constants = "int64[1] flat = {-1}, int64[1] axes = {0}"
    assert_rewrites(
        PASS,
        _model(
            "h = Reshape(x, flat)  y = ReduceSum<keepdims=0, noop_with_empty_axes=1>(h, axes)",
            constants=constants,
        ),
        _model("y = ReduceSum<keepdims=0>(x)"),
    )


def test_the_logarithm_of_integers_that_old_opsets_have_stays() -> None:
    assert_unchanged(
        PASS,
        "(int64[2,3] x) => (int64 y) { h = Flatten(x)  y = ReduceLogSumExp<keepdims=0>(h) }",
        opset=13,
        because="newer forms take no integers",
    )
