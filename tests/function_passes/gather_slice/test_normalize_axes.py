import pytest

from tests.small import parsed
from tiered import PassContext, get_pass
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "normalize_axes"


def test_an_axis_counts_from_the_front() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,1] y, int64[2,1] i) <int64[1] k = {1}> { y, i = TopK<axis=-1>(x, k) }",
        "(float[2,3] x) => (float[2,1] y, int64[2,1] i) <int64[1] k = {1}> { y, i = TopK<axis=1>(x, k) }",
    )


@pytest.mark.parametrize(
    "call",
    [
        "Softmax<axis={}>(x)",
        "LogSoftmax<axis={}>(x)",
        "Concat<axis={}>(x, x)",
        "Gather<axis={}>(x, i)",
        "LayerNormalization<axis={}>(x, s)",
    ],
)
def test_every_attribute_of_its_kind_does(call: str) -> None:
    used = {"Gather": "int64[1] i = {0}", "LayerNormalization": "float[4] s = {1,2,3,4}"}
    constants = used.get(call.split("<", maxsplit=1)[0], "")
    model = "(float[2,N,4] x) => (float[A,B,C] y) " + (f"<{constants}>" if constants else "")
    assert_rewrites(
        PASS, f"{model} {{ y = {call.format(-1)} }}", f"{model} {{ y = {call.format(2)} }}"
    )


def test_axes_that_are_operands_are_constants_that_are_shared() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,1] y, float[2,1] z) <int64[1] a = {-1}>"
        " { y = ReduceMax(x, a)  z = ReduceMean(x, a) }",
        "(float[2,3] x) => (float[2,1] y, float[2,1] z) <int64[1] a = {1}>"
        " { y = ReduceMax(x, a)  z = ReduceMean(x, a) }",
    )


def test_axes_that_are_attributes_stay_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,1] y) { y = ReduceMax<axes=[-1]>(x) }",
        "(float[2,3] x) => (float[2,1] y) { y = ReduceMax<axes=[1]>(x) }",
        opset=13,
    )


def test_an_unsqueeze_counts_in_its_result() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3,1] y) <int64[1] a = {-1}> { y = Unsqueeze(x, a) }",
        "(float[2,3] x) => (float[2,3,1] y) <int64[1] a = {2}> { y = Unsqueeze(x, a) }",
    )


def test_a_constant_node_goes_with_its_only_reader() -> None:
    assert_rewrites(
        PASS,
        "(float[2,1] x) => (float[2] y) { a = Constant<value_ints=[-1]>()  y = Squeeze(x, a) }",
        "(float[2,1] x) => (float[2] y) <int64[1] a = {1}> { y = Squeeze(x, a) }",
    )


def test_what_counts_from_the_front_stays_as_it_is() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,3] y, float[2,1] z) <int64[1] a = {1}>"
        " { h = Softmax(x)  y = LogSoftmax<axis=1>(h)  z = ReduceSum(y, a) }",
    )


def test_axes_that_are_fed_stay_as_they_are() -> None:
    assert_unchanged(
        PASS, "(float[2,3] x, int64[1] a = {-1}) => (float[A,B] y) { y = ReduceSum(x, a) }"
    )


def test_an_axis_that_the_call_decides_stays() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2,3] x) => (float[A,B] y) { y = l.f<axis=-1>(x) }"
        ' <opset_import: ["" : 21], domain: "l"> f <axis> (a) => (b) { b = Softmax<axis: int = @axis>(a) }',
    )


def test_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] s) => (float[A,B] y) { h = Reshape(x, s)  y = Softmax<axis=-1>(h) }",
        because="the rank is not known",
    )


def test_a_constant_that_was_undone_is_made_again() -> None:
    text = (
        "(float[2,1] x, float[3,1] z) => (float[2] y, float[3] w) <int64[1] a = {-1}>"
        " { y = Squeeze(x, a)  w = Squeeze(z, a) }"
    )
    for limit, expected in [(0, ["a", "a"]), (1, ["axes", "a"]), (2, ["axes", "axes"])]:
        model = parsed(text)
        with PassContext(opt_level=1, rewrite_limit=limit):
            get_pass(PASS)(model)
        assert [node.given(1).name for node in model.main.nodes] == expected, limit
