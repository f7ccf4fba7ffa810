"""Parameters of QuantizeLinear and DequantizeLinear: their axes, settings and operands."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.graph import Model
from tiered.rewriter.idioms.quantization_parts import (
    along_axis,
    axis_behind,
    is_along,
    is_blocked,
    is_one,
    moved_axis,
    settings_of,
    why_not_moved,
)

STOCK = """float s = {0.5}, float same = {0.5}, float near = {0.25}, float[1] one = {0.5},
    float[3] v = {1,2,3}, uint8 z = {3}, uint8[3] zv = {1,2,3}, int8 zi = {3},
    int4[2] w4 = {1,2}, int4 z4 = {0}, float[2,2,2] blocks = {1,2,3,4,5,6,7,8}"""


def of(nodes: str, inputs: str = "uint8[2,3,4] x, float[2,3,4] f, float[2,3,4] k") -> Model:
    return parsed(f"({inputs}) => (float[?,?,?] y) <{STOCK}> {{ {nodes} }}")


def unit(call: str, inputs: str = "uint8[2,3,4] x, float[2,3,4] f, float k"):  # type: ignore[no-untyped-def]  # a node
    return made_by(of(f"y = {call}", inputs), "y")


@pytest.mark.parametrize(
    ("call", "because"),
    [
        ("DequantizeLinear(x, s, z)", None),
        ("QuantizeLinear(f, s, z)", None),
        ("QuantizeLinear<output_dtype=5>(f, s)", None),  # int16
        ("QuantizeLinear<output_dtype=22>(f, s)", "the integers have fewer than 8 bits"),
        ("QuantizeLinear<output_dtype=17>(f, s)", "the integers have fewer than 8 bits"),
        ("DequantizeLinear(w4, s)", "the integers have fewer than 8 bits"),
        ("DequantizeLinear<axis=2, block_size=2>(x, blocks)", "a scale is for a block of indices"),
    ],
)
def test_integers_that_kernels_move(call: str, because: str | None) -> None:
    # y has the dtype of its producer.
    node = made_by(of(f"q = {call}  y = Cast<to=1>(q)", "uint8[2,2,4] x, float[2,3,4] f"), "q")
    found = why_not_moved(node)
    assert (None if found is None else str(found)) == because


def test_one_scale_has_one_element_in_any_shape() -> None:
    model = of("y = Abs(f)")
    for name, expected in (("s", True), ("one", True), ("v", False), ("blocks", False)):
        assert is_one(named(model, name)) is expected


MOVES = {"Identity": "m = Identity(f)", "Transpose": "m = Transpose<perm=[2,0,1]>(f)"}


@pytest.mark.parametrize(
    ("move", "axis", "rank", "expected"),
    [
        ("m = Identity(f)", 1, 3, 1),
        ("m = Identity(f)", -1, 3, -1),
        ("m = Identity(f)", 1, None, None),
        ("m = Transpose<perm=[2,0,1]>(f)", 0, 3, 1),
        ("m = Transpose<perm=[2,0,1]>(f)", -1, 3, 0),
        ("m = Transpose<perm=[2,0,1]>(f)", 0, None, None),
        ("m = Flatten(f)", 1, 3, None),
    ],
)
def test_where_an_axis_moves_to(
    move: str, axis: int, rank: int | None, expected: int | None
) -> None:
    assert moved_axis(made_by(of(f"{move} y = Abs(m)"), "m"), axis, rank) == expected


@pytest.mark.parametrize(
    ("scale", "back", "rank", "expected"),
    [
        ("s", False, 3, None),
        ("one", True, None, None),
        ("v", False, 3, 2),  # axis 1 goes to 2
        ("v", True, 3, 0),  # axis 0 comes to 1
        ("v", False, None, "the axis of the scales may not survive"),
        ("v", True, None, "the axis of the scales may not survive"),
    ],
)
def test_the_axis_of_the_scales_on_the_other_side(
    scale: str, back: bool, rank: int | None, expected: object
) -> None:
    model = of(f"m = Transpose<perm=[2,0,1]>(f)  y = DequantizeLinear(x, {scale})")
    found = axis_behind(made_by(model, "m"), made_by(model, "y"), rank, back=back)
    assert (str(found) if isinstance(expected, str) else found) == expected


def test_a_negative_axis_is_found_behind_too() -> None:
    model = of("m = Transpose<perm=[2,0,1]>(f)  y = DequantizeLinear<axis=-2>(x, v)")
    move, node = made_by(model, "m"), made_by(model, "y")
    assert axis_behind(move, node, 3) == 2
    assert axis_behind(move, node, 3, back=True) == 0
    flat = of("m = Flatten(f)  y = DequantizeLinear(x, v)")
    found = axis_behind(made_by(flat, "m"), made_by(flat, "y"), 3, back=True)
    assert str(found) == "the axis of the scales may not survive"


@pytest.mark.parametrize(
    ("call", "axis", "rank", "expected"),
    [
        ("DequantizeLinear(x, s)", 1, 3, False),
        ("DequantizeLinear(x, v)", 1, 3, True),
        ("DequantizeLinear(x, v)", -2, 3, True),
        ("DequantizeLinear(x, v)", 0, 3, False),
        ("DequantizeLinear<axis=-2>(x, v)", 1, 3, True),
        ("DequantizeLinear(x, v)", 0, None, True),
    ],
)
def test_scales_may_vary_along_their_axis(
    call: str, axis: int, rank: int | None, expected: bool
) -> None:
    assert is_along(made_by(of(f"y = {call}"), "y"), axis, rank) is expected


def test_blocks_have_a_size() -> None:
    model = of("b = DequantizeLinear<axis=2, block_size=2>(x, blocks)  y = DequantizeLinear(x, s)")
    assert is_blocked(made_by(model, "b"))
    assert not is_blocked(made_by(model, "y"))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("DequantizeLinear(x, s, z)", "DequantizeLinear(x, same, z)", True),
        ("DequantizeLinear(x, s, z)", "DequantizeLinear(x, near, z)", False),
        ("DequantizeLinear(x, s, z)", "DequantizeLinear(x, s)", False),
        ("DequantizeLinear(x, s)", "DequantizeLinear(x, s, )", True),
        ("DequantizeLinear(x, s)", "DequantizeLinear(x, one)", False),
        ("DequantizeLinear(x, v, zv)", "DequantizeLinear<axis=2>(x, v, zv)", False),
        ("DequantizeLinear(x, s, z)", "com.microsoft.DequantizeLinear(x, s, z)", False),
        ("DequantizeLinear(x, k, z)", "DequantizeLinear(x, k, z)", True),
        ("DequantizeLinear(x, k, z)", "DequantizeLinear(x, s, z)", False),
        ("QuantizeLinear(f, s, z)", "QuantizeLinear(f, s, zi)", False),
        ("QuantizeLinear(f, s, z)", "DequantizeLinear(x, s, z)", True),
    ],
)
def test_settings_are_equal_where_all_but_the_data_is(one: str, other: str, expected: bool) -> None:
    model = of(f"a = {one}  b = {other}  y = Abs(f)", "uint8[2,3,4] x, float[2,3,4] f, float k")
    first, second = settings_of(made_by(model, "a")), settings_of(made_by(model, "b"))
    assert (first == second) is expected


@pytest.mark.parametrize(
    ("inputs", "call", "parameter", "shape"),
    [
        ("uint8[2,3,4] x", "DequantizeLinear(x, s)", "s", None),
        ("uint8[2,3,4] x", "DequantizeLinear(x, one)", "one", None),
        ("uint8[3] x", "DequantizeLinear<axis=0>(x, v)", "v", None),
        ("uint8[2,3] x", "DequantizeLinear(x, v)", "v", None),
        ("uint8[2,3] x", "DequantizeLinear<axis=-1>(x, v)", "v", None),
        ("uint8[2,3,4] x", "DequantizeLinear(x, v)", "v", [-1, 1]),
        ("uint8[2,3,4] x", "DequantizeLinear<axis=-2>(x, v)", "v", [-1, 1]),
        ("uint8[3,2,4] x", "DequantizeLinear<axis=0>(x, v)", "v", [-1, 1, 1]),
        ("uint8 x", "DequantizeLinear(x, one)", "one", []),
    ],
)
def test_a_parameter_broadcasts_along_its_axis(
    inputs: str, call: str, parameter: str, shape: list[int] | None
) -> None:
    model = of(f"y = {call}", inputs)
    value = named(model, parameter)
    made = along_axis(model.main, made_by(model, "y"), named(model, "x"), value)
    if shape is None:
        assert made is value
        return
    assert made.producer is not None
    assert made.producer.inputs[0] is value
    target = made.producer.inputs[1]
    assert target is not None
    assert target.const is not None
    assert (target.const.dtype, target.const.tolist()) == (np.int64, shape)
