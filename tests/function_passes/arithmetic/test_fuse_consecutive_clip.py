import re

import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_clip"


def _clips(first: str, second: str, dtype: str = "float") -> str:
    """Return two Clips; each is "low,high", with an absent bound where nothing stands."""
    constants, calls = [], []
    for name, text in (("f", first), ("g", second)):
        operands = []
        for key, number in zip("lh", text.split(","), strict=True):
            if number:
                constants.append(f"{dtype} {name}{key} = {{{number}}}")
            operands.append(f"{name}{key}" if number else "")
        calls.append(", ".join(operands).rstrip(", "))
    first_call, second_call = (f", {call}" if call else "" for call in calls)
    return (
        f"({dtype}[N] x) => ({dtype}[N] y) <{', '.join(constants)}>"
        f" {{ h = Clip(x{first_call})  y = Clip(h{second_call}) }}"
    )


def _clip(bounds: str, dtype: str = "float") -> str:
    constants: list[str] = []
    operands: list[str] = []
    low, high = bounds.split(",")
    for key, number in (("l", low), ("l" if low == high else "h", high)):
        if number and key not in operands:
            constants.append(f"{dtype} {key} = {{{number}}}")
        operands.append(key if number else "")
    call = ", ".join(["x", *operands]).rstrip(", ")
    listed = f"<{', '.join(constants)}>" if constants else ""
    return f"({dtype}[N] x) => ({dtype}[N] y) {listed} {{ y = Clip({call}) }}"


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("0,6", "0,6", "0,6"),
        ("-1,5", "0,9", "0,5"),
        ("-0.0,5", "0,9", "-0.0,5"),
        ("-3,3", "-1,0", "-1,0"),
        ("0,1", "2,3", "2,2"),
        ("4,5", "2,3", "3,3"),
        ("5,4", "0,9", "4,4"),
        ("0,9", "5,4", "4,4"),
        ("0,", ",6", "0,6"),
        (",6", "0,", "0,6"),
        (",6", ",4", ",4"),
        ("1,", "2,", "2,"),
    ],
)
def test_one_clip_has_the_bounds_of_both(first: str, second: str, both: str) -> None:
    for dtype in ("float", "double", "int32") if "." not in first else ("float",):
        assert_rewrites(PASS, _clips(first, second, dtype), _clip(both, dtype))


def test_no_bounds_twice_are_no_bounds() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) { h = Clip(x)  y = Clip(h) }",
        "(float[N] x) => (float[N] y) { y = Clip(x) }",
    )


@pytest.mark.parametrize(
    ("first", "second", "bounds"),
    [
        ("Relu(x)", "Clip(h, a, b)", "-1,6"),
        ("Relu(x)", "Clip(h, a, b)", "0,6"),
        ("Clip(x, a, b)", "Relu(h)", "-1,6"),
        ("Clip(x, a, b)", "Relu(h)", "-0.0,6"),
    ],
)
def test_a_relu_is_a_clip_at_zero(first: str, second: str, bounds: str) -> None:
    low, high = bounds.split(",")
    after = "-0.0" if low == "-0.0" else "0"
    assert_rewrites(
        PASS,
        f"(float[N] x) => (float[N] y) <float a = {{{low}}}, float b = {{{high}}}> {{ h = {first}  y = {second} }}",
        f"(float[N] x) => (float[N] y) <float a = {{{after}}}, float b = {{{high}}}> {{ y = Clip(x, a, b) }}",
    )


def test_a_relu_below_no_bound_needs_none() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float a = {2}> { h = Relu(x)  y = Clip(h, a) }",
        "(float[N] x) => (float[N] y) <float a = {2}> { y = Clip(x, a) }",
    )


def test_old_opsets_have_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) { h = Relu(x)  y = Clip<min=-1.0, max=6.0>(h) }",
        "(float[N] x) => (float[N] y) { y = Clip<min=0.0, max=6.0>(x) }",
        opset=7,
    )


def test_old_opsets_have_the_bounds_of_float32() -> None:
    assert_unchanged(
        PASS,
        "(double[N] x) => (double[N] y) { h = Relu(x)  y = Clip<max=6.0>(h) }",
        opset=7,
    )


@pytest.mark.parametrize(("first", "second"), [("-2,-1", "0,3"), ("-2,0", "0,3")])
def test_a_lone_zero_may_have_either_sign(first: str, second: str) -> None:
    assert_unchanged(
        PASS, _clips(first, second), because="only a zero is left, and its sign differs"
    )


def test_a_lone_zero_among_integers_has_none() -> None:
    assert_rewrites(PASS, _clips("-2,-1", "0,3", "int32"), _clip("0,0", "int32"))


def test_bounds_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, float a = {0}) => (float[N] y) { h = Relu(x)  y = Clip(h, a) }",
        because="a bound is not a constant finite number",
    )


def test_infinite_bounds_and_nans_are_left_alone() -> None:
    for bits in ("31744", "32256"):
        assert_unchanged(
            PASS,
            f"(float16[N] x) => (float16[N] y) <float16 h = {{{bits}}}> {{ r = Relu(x)  y = Clip(r, , h) }}",
            because="a bound is not a constant finite number",
        )


def test_an_unknown_dtype_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x) => (float[2] y) { y = l.f(x) }"
        ' <opset_import: ["" : 21], domain: "l"> f (a) => (b) { c = Clip(a)  b = Clip(c) }',
        because="the dtype of x is not known",
    )


def test_an_intermediate_value_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[N] h, float[N] y) { h = Clip(x)  y = Relu(h) }",
        because="an inner value is a graph output",
    )


@pytest.mark.parametrize(
    ("nodes", "after"),
    [
        ("h = Max(x, c) y = Clip(h, a, b)", "Clip(x, c, b)"),
        ("h = Min(x, c) y = Clip(h, a, b)", "Clip(x, a, c)"),
        ("h = Clip(x, a, b) y = Max(h, c)", "Clip(x, c, b)"),
        ("h = Clip(x, a, b) y = Min(c, h)", "Clip(x, a, c)"),
        ("h = Min(x, c) y = Clip(h, a)", "Clip(x, a, c)"),
        ("h = Min(x, c) y = Clip(h, , b)", "Clip(x, , c)"),
        ("h = Clip(x, a, b) y = Max(h, d)", "Clip(x, d, again)"),
        ("h = Clip(x, a, b) y = Min(h, d)", "Clip(x, a, b)"),
        ("h = Min(x, d) y = Relu(h)", "Clip(x, zero, d)"),
        ("h = Max(x, c) y = Relu(h)", "Max(x, c)"),
        ("h = Max(x, minus) y = Relu(h)", "Relu(x)"),
        ("h = Relu(x) y = Max(h, c)", "Max(x, c)"),
        ("h = Relu(x) y = Max(h, minus)", "Relu(x)"),
    ],
)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_max_or_min_is_a_clip_with_one_bound(nodes: str, after: str, dtype: str) -> None:
    assert_rewrites(PASS, _bounded(nodes, dtype), _bounded(f"y = {after}", dtype))


def _bounded(nodes: str, dtype: str = "float") -> str:
    """Return a model of nodes with the constants that they read."""
    numbers = {"a": "-1", "b": "6", "c": "2", "d": "9", "again": "9", "minus": "-2"}
    numbers |= {"zero": "0", "far": "inf"}
    used = [name for name in numbers if name in re.findall(r"[a-z]+", nodes)]
    constants = ", ".join(f"{dtype} {name} = {{{numbers[name]}}}" for name in used)
    return f"({dtype}[N] x) => ({dtype}[N] y) <{constants}> {{ {nodes} }}"


def test_integers_have_one_zero() -> None:
    assert_rewrites(
        PASS,
        _bounded("h = Clip(x, a, b) y = Max(h, zero)", "int32"),
        _bounded("y = Clip(x, zero, b)", "int32"),
    )


def test_max_and_min_choose_between_zeros() -> None:
    for nodes in ("h = Clip(x, a, b) y = Max(h, zero)", "h = Min(x, zero) y = Relu(h)"):
        assert_unchanged(
            PASS, _bounded(nodes), because="Max and Min may return a zero of either sign"
        )


def test_a_max_of_infinity_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        _bounded("h = Max(x, far) y = Clip(h, a, b)"),
        because="a bound is not a constant finite number",
    )


def test_a_bound_of_a_larger_rank_is_left_alone() -> None:
    text = "(float[N] x) => (float[1,N] y) <float[1,1] c = {{2}}> {{ {} }}"
    for nodes in ("h = Max(x, c) y = Relu(h)", "h = Relu(x) y = Max(h, c)"):
        assert_unchanged(PASS, text.format(nodes), because="a bound may give x more dims")


def test_several_bounds_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N,2] x) => (float[N,2] y) <float[2] c = {2,3}> { h = Max(x, c) y = Relu(h) }",
        because="a bound is not a constant finite number",
    )


def test_doubles_before_opset_12_have_no_clip() -> None:
    assert_unchanged(
        PASS,
        _bounded("h = Min(x, d) y = Relu(h)", "double"),
        opset=11,
        because="before opset 12 Clip has no kernel for doubles",
    )


def test_the_parts_of_a_hard_swish_are_left_alone() -> None:
    assert_unchanged(PASS, _bounded("h = Relu(x) y = Min(h, b)"))
