"""Sizes of what convolutions, pools and Pad make; worked out by hand."""

import pytest

from tests.small import made_by, parsed
from tiered.graph.core.types import TensorType
from tiered.graph.shape_inference.infer import inferred_types

ONES = ",".join(["1"] * 72)
STOCK = f"""float[4,3,3,2] w = {{{ONES}}}, float[4,3,3] flat = {{{ONES[:71]}}}, float zero = {{0}},
    int64[8] p = {{0,0,1,2,0,0,3,-1}}, int64[4] q = {{1,-2,3,1}}, int64[2] axes = {{-1,0}},
    int64[2] twice = {{0,0}}, int64[2] more = {{1,2}}, int64[1] last = {{1}},
    int64[2] less = {{-9,0}}"""


def types(call: str, *, out: str = "y", opset: int = 21) -> list[TensorType] | None:
    """Return the types that the rule of a node infers, None if it declines."""
    text = (
        "(float[n,3,8,9] x, float[n,3,h,9] d, float[6] v, float[n,3,8] r, float[2,3,0,5] e,"
        " float[k,c,a,z] u, int64[2] i) => (float[?,?,?,?] y)"
    )
    model = parsed(f"{text} <{STOCK}> {{ {out} = {call} }}", opset=opset)
    found = inferred_types(made_by(model, "y"))
    if found is None:
        return None
    assert all(isinstance(each, TensorType) for each in found.types)
    return [each for each in found.types if isinstance(each, TensorType)]


def shape(call: str, *, opset: int = 21) -> object:
    found = types(call, opset=opset)
    return None if found is None else found[0].shape


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        # floor((8 - 3) / 1) + 1 and floor((9 - 2) / 1) + 1
        ("Conv(x, w)", ("n", 4, 6, 8)),
        ("Conv<kernel_shape=[3,2]>(x, w)", ("n", 4, 6, 8)),
        ("Conv<pads=[1,0,2,1]>(x, w)", ("n", 4, 9, 9)),
        ("Conv<strides=[2,3]>(x, w)", ("n", 4, 3, 3)),
        ("Conv<dilations=[2,3]>(x, w)", ("n", 4, 4, 6)),
        ("Conv<dilations=[2,1], pads=[2,1,2,1], strides=[2,2]>(x, w)", ("n", 4, 4, 5)),
        ('Conv<auto_pad="VALID">(x, w)', ("n", 4, 6, 8)),
        ('Conv<auto_pad="VALID", pads=[1,1,1,1]>(x, w)', ("n", 4, 6, 8)),
        ("Conv(d, w)", ("n", 4, None, 8)),
        ("Conv<pads=[1,0,1,0]>(d, w)", ("n", 4, "h", 8)),
        ("Conv<pads=[2,0,2,0], dilations=[2,1]>(d, w)", ("n", 4, "h", 8)),
        ("Conv<pads=[1,0,1,0], strides=[2,1]>(d, w)", ("n", 4, None, 8)),
        ("Conv<pads=[1,0,2,0]>(d, w)", ("n", 4, None, 8)),
        ("Conv(r, flat)", ("n", 4, 6)),
    ],
)
def test_a_convolution_has_an_element_for_each_position(call: str, expected: object) -> None:
    assert shape(call) == expected


@pytest.mark.parametrize(
    "call",
    [
        "Conv<kernel_shape=[2,2]>(x, w)", "Conv(r, w)", "Conv(v, v)", "Conv(x, u)",
        'Conv<auto_pad="SAME_UPPER">(x, w)', "Conv<pads=[1,1]>(x, w)", "Conv(e, w)",
        "Conv<dilations=[4,1]>(x, w)", "MaxPool<kernel_shape=[2]>(x)",
        "MaxPool<kernel_shape=[9,1]>(x)", "GlobalMaxPool(i)",
    ],
)  # fmt: skip
def test_what_no_rule_knows_is_left_to_onnx(call: str) -> None:
    assert shape(call) is None


@pytest.mark.parametrize("pool", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("kernel_shape=[2,2]", ("n", 3, 7, 8)),
        ("kernel_shape=[2,2], strides=[2,2]", ("n", 3, 4, 4)),
        ("kernel_shape=[8,9]", ("n", 3, 1, 1)),
        # A third window of rows would start at 8, after the data.
        ("kernel_shape=[2,2], strides=[4,4], ceil_mode=1", ("n", 3, 2, 3)),
        ("kernel_shape=[2,2], strides=[2,2], ceil_mode=1", ("n", 3, 4, 5)),
        ("kernel_shape=[2,2], strides=[3,3], pads=[1,1,1,1], ceil_mode=1", ("n", 3, 3, 4)),
    ],
)
def test_a_pool_keeps_the_channels(pool: str, attributes: str, expected: object) -> None:
    assert shape(f"{pool}<{attributes}>(x)") == expected


@pytest.mark.parametrize(
    ("operand", "attributes", "expected"),
    [
        ("d", "kernel_shape=[3,2], pads=[1,0,1,0]", ("n", 3, "h", 8)),
        ("d", "kernel_shape=[3,2], pads=[1,0,0,0]", ("n", 3, None, 8)),
        ("d", "kernel_shape=[3,2], pads=[1,0,1,0], strides=[2,1]", ("n", 3, None, 8)),
        ("x", 'kernel_shape=[3,2], auto_pad="SAME_UPPER"', ("n", 3, None, None)),
        ("x", "kernel_shape=[3,2], pads=[1,1,1,1,1,1]", ("n", 3, None, None)),
        # Padding as large as the window, and below zero.
        ("x", "kernel_shape=[3,2], pads=[3,0,0,0]", ("n", 3, None, 8)),
        ("x", "kernel_shape=[3,2], pads=[2,0,0,0]", ("n", 3, 8, 8)),
        ("x", "kernel_shape=[3,2], pads=[0,-1,0,0]", ("n", 3, 6, None)),
        ("x", "kernel_shape=[9,9]", ("n", 3, None, 1)),
        ("e", "kernel_shape=[1,1]", (2, 3, None, 5)),
        ("x", "kernel_shape=[3,2], dilations=[3,1]", ("n", 3, 2, 8)),
    ],
)
def test_a_pool_that_rounds_up_counts_windows_that_meet_data(
    operand: str, attributes: str, expected: object
) -> None:
    assert shape(f"MaxPool<ceil_mode=1, {attributes}>({operand})") == expected


def test_a_window_may_start_in_the_last_row_but_not_after_it() -> None:
    # 5 columns and stride 2: windows start at 0, 2, 4; with one pad before, at 0, 2, 4 of 6.
    assert shape("MaxPool<ceil_mode=1, kernel_shape=[1,2], strides=[1,2]>(e)") == (2, 3, None, 3)
    padded = "MaxPool<ceil_mode=1, kernel_shape=[1,2], strides=[1,2], pads=[0,1,0,1]>(e)"
    assert shape(padded) == (2, 3, None, 3)


def test_the_places_of_maxima_have_the_type_of_integers() -> None:
    found = types("MaxPool<ceil_mode=1, kernel_shape=[2,2]>(x)", out="y, i2")
    assert found == [TensorType(1, ("n", 3, 7, 8)), TensorType(7, ("n", 3, 7, 8))]


@pytest.mark.parametrize("pool", ["GlobalAveragePool", "GlobalMaxPool"])
def test_a_pool_of_everything_leaves_one_element_a_channel(pool: str) -> None:
    assert shape(f"{pool}(x)") == ("n", 3, 1, 1)
    assert shape(f"{pool}(r)") == ("n", 3, 1)
    assert shape(f"{pool}(v)") is None


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Pad(x, p)", ("n", 3, 12, 10)),
        ("Pad(d, p)", ("n", 3, None, 10)),
        ("Pad(x, more, , last)", ("n", 6, 8, 9)),
        # -1 and 0: pads of the last axis are 1 + 3, those of the first -2 + 1.
        ("Pad(x, q, zero, axes)", (None, 3, 8, 13)),
        ("Pad(e, q, zero, axes)", (1, 3, 0, 9)),
        ("Pad(x, q, , twice)", None),
        ("Pad(x, q)", None),
        ("Pad(x, i, , last)", None),
        ("Pad(x, less, , last)", None),
    ],
)
def test_pads_add_to_the_dims_of_their_axes(call: str, expected: object) -> None:
    assert shape(call) == expected


def test_pads_are_an_attribute_before_opset_11() -> None:
    assert shape("Pad<pads=[0,0,1,2,0,0,3,-1]>(x)", opset=10) == ("n", 3, 12, 10)


def test_pads_may_leave_nothing() -> None:
    assert shape("Pad<pads=[0,0,-8,0,0,0,0,0]>(x)", opset=10) == ("n", 3, 0, 9)
    assert shape("Pad<pads=[0,0,-9,0,0,0,0,0]>(x)", opset=10) is None
