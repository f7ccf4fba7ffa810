import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_addend_before_softmax"


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("call", "axis", "addend"),
    [
        ("Add(x, c)", -1, "float c = {2}"),
        ("Add(c, x)", 2, "float[2,1] c = {1,-2}"),
        ("Sub(x, c)", 1, "float[3] c = {1,2,3}"),
        ("Add(x, c)", 0, "float[1,2,1] c = {100,3}"),
        ("Add(x, c)", 0, "float[2,3] c = {1,2,3,4,5,6}"),
    ],
)
def test_what_is_added_to_all_exponents_goes(kind: str, call: str, axis: int, addend: str) -> None:
    head = "(float[N,2,3] x) => (float[N,2,3] y)"
    assert_rewrites(
        PASS,
        f"{head} <{addend}> {{ h = {call}  y = {kind}<axis={axis}>(h) }}",
        f"{head} {{ y = {kind}<axis={axis}>(x) }}",
    )


@pytest.mark.parametrize(
    ("axis", "addend"), [(-1, "float[3] c = {1,2,3}"), (1, "float[2,1] c = {1,2}")]
)
def test_an_addend_that_differs_along_the_axis_stays(axis: int, addend: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,3] x) => (float[N,2,3] y) <{addend}> {{ h = Add(x, c)  y = Softmax<axis={axis}>(h) }}",
        because="the addend may differ along the axis",
    )


def test_an_addend_that_makes_x_larger_stays() -> None:
    for dims in ("3", "N,3"):
        assert_unchanged(
            PASS,
            f"(float[{dims}] x) => (float[A,3] y) <float[2,1] c = {{1,2}}>"
            " { h = Add(x, c)  y = Softmax(h) }",
            because="the addend may make x larger",
        )


@pytest.mark.parametrize("number", ["1e4", "inf", "-inf", "nan"])
def test_large_addends_stay(number: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,3] x) => (float[N,3] y) <float c = {{{number}}}> {{ h = Add(x, c)  y = Softmax(h) }}",
        because="beside the addend, x is rounded",
    )


def test_beside_17_halves_are_rounded() -> None:
    assert_unchanged(
        PASS,
        "(float16[N,3] x) => (float16[N,3] y) <float16 c = {19520}> { h = Add(x, c)  y = Softmax(h) }",
        because="beside the addend, x is rounded",
    )


def test_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x) => (float[2] y) { y = l.f(x) }"
        ' <opset_import: ["" : 21], domain: "l"> f (a) => (b)'
        " { c = Constant<value = float {2}>()  d = Add(a, c)  b = Softmax(d) }",
        because="the rank of x is not known",
    )


def test_an_old_softmax_is_over_several_axes() -> None:
    assert_unchanged(
        PASS,
        "(float[N,2,3] x) => (float[N,2,3] y) <float c = {2}> { h = Add(x, c)  y = Softmax<axis=1>(h) }",
        opset=12,
    )


def test_what_is_taken_from_a_number_is_not_x() -> None:
    assert_unchanged(
        PASS, "(float[N,3] x) => (float[N,3] y) <float c = {2}> { h = Sub(c, x)  y = Softmax(h) }"
    )


@pytest.mark.parametrize("opset", [9, 12])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_before_opset_13_the_default_axis_is_1(kind: str, opset: int) -> None:
    head = "(float[N,3,1] x) => (float[N,3,1] y)"
    assert_rewrites(
        PASS,
        f"{head} <float c = {{2}}> {{ h = Add(x, c)  y = {kind}(h) }}",
        f"{head} {{ y = {kind}<axis=1>(x) }}",
        opset=opset,
    )
