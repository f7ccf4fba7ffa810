"""Resize and Upsample: nearest elements move, and of others each resized axis counts."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import FLOAT, call, free, known, only
from tests.certify.test_checker import proof
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.rules import resizing
from tiered.certify.rules.resizing import RESIZING, resize

X = free("x", 2, 3)


def scales(*numbers: float) -> tuple[CheckedTensor | None, CheckedTensor]:
    return None, known(numbers, np.float32)


def sizes(*numbers: int) -> tuple[None, None, CheckedTensor]:
    return None, None, known(numbers)


def nearest(
    x: CheckedTensor, *inputs: CheckedTensor | None, op: str = "Resize", **held: Any
) -> CheckedTensor:
    return only(RESIZING[op](call(op, x, *inputs, **held)))


def smooth(
    x: CheckedTensor, *inputs: CheckedTensor | None, mode: str = "linear", **held: Any
) -> CheckedTensor:
    return only(resize(call("Resize", x, *inputs, mode=mode, **held)))


# --- nearest elements -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "rows", "columns"),
    [
        (scales(2, 1), [0, 0, 1, 1], [0, 1, 2]),
        (scales(1, 2), [0, 1], [0, 0, 1, 1, 2, 2]),
        (sizes(4, 6), [0, 0, 1, 1], [0, 0, 1, 1, 2, 2]),
        (sizes(2, 3), [0, 1], [0, 1, 2]),
    ],
)
def test_an_element_is_read_where_the_runtime_reads_it(
    inputs: tuple[CheckedTensor | None, ...], rows: list[int], columns: list[int]
) -> None:
    made = nearest(X, *inputs)
    assert (made.shape, made.dtype) == ((len(rows), len(columns)), FLOAT)
    assert (made.terms == X.terms[np.ix_(rows, columns)]).all()


def test_attributes_say_where_elements_are_read() -> None:
    row = free("row", 4)
    plain = nearest(row, *scales(0.5), coordinate_transformation_mode="asymmetric")
    assert (plain.terms == row.terms[[0, 2]]).all()
    aligned = nearest(row, *sizes(2), coordinate_transformation_mode="align_corners")
    assert (aligned.terms == row.terms[[0, 3]]).all()
    ceiled = nearest(
        row, *scales(0.75), coordinate_transformation_mode="asymmetric", nearest_mode="ceil"
    )
    assert (ceiled.terms == row.terms[[0, 2, 3]]).all()


def test_named_axes_are_resized_and_others_stay() -> None:
    for axis in (1, -1):
        made = nearest(X, *scales(2), axes=[axis])
        assert (made.terms == X.terms[:, [0, 0, 1, 1, 2, 2]]).all()
        made = nearest(X, *sizes(6), axes=[axis])
        assert (made.terms == X.terms[:, [0, 0, 1, 1, 2, 2]]).all()
    with pytest.raises(NoRule):
        nearest(X, *scales(2), axes=[0, 1])


def test_older_opsets_have_the_scales_elsewhere() -> None:
    expected = X.terms[:, [0, 0, 1, 1, 2, 2]]
    numbers = known([1, 2], np.float32)
    assert (nearest(X, numbers, op="Upsample", opset=9).terms == expected).all()
    assert (nearest(X, op="Upsample", opset=7, scales=[1.0, 2.0]).terms == expected).all()
    assert (nearest(X, numbers, opset=10).terms == expected).all()


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_operands_that_older_opsets_need_are_empty(opset: int) -> None:
    expected, none = X.terms[:, [0, 0, 1, 1, 2, 2]], known(np.zeros(0), np.float32)
    numbers = known([1, 2], np.float32)
    assert (nearest(X, none, numbers, opset=opset).terms == expected).all()
    assert (nearest(X, none, none, known([2, 6]), opset=opset).terms == expected).all()


def test_a_scale_that_keeps_the_size_of_an_axis_has_no_rule() -> None:
    """onnxruntime copies a tensor of which all sizes stay; with another size it moves elements."""
    for numbers in ((1.1, 1), (1.1, 2)):
        with pytest.raises(NoRule):
            nearest(X, *scales(*numbers), nearest_mode="floor")
    head = "(float[3,2] x) => (float[3,4] y)"
    how = 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'
    one, other = (
        f'{head} <float[2] s = {{{first}, 2}}> {{ y = Resize<{how}>(x, "", s) }}'
        for first in (1.1, 1)
    )
    assert not proof(one, other).is_proved
    assert proof(other, other).domain == "bits"


@pytest.mark.parametrize(
    "held",
    [
        {"mode": "linear"}, {"coordinate_transformation_mode": "tf_crop_and_resize"},
        {"trusts": False},
    ],
)  # fmt: skip
def test_what_is_no_movement_axis_by_axis_has_no_rule(held: dict[str, Any]) -> None:
    with pytest.raises(NoRule):
        nearest(X, *scales(1, 2), **held)


def test_sizes_that_keep_a_ratio_are_no_sizes() -> None:
    policy = "not_larger"
    for rule in (RESIZING["Resize"], resize):
        with pytest.raises(NoRule):
            rule(call("Resize", X, *sizes(4, 6), keep_aspect_ratio_policy=policy))
    assert nearest(X, *sizes(4, 6), keep_aspect_ratio_policy="stretch").shape == (4, 6)


@pytest.mark.parametrize("numbers", [None, free("x", 2), known([0, 1, 2]), known([[0, 1]])])
def test_what_the_runtime_makes_otherwise_has_no_rule(
    numbers: CheckedTensor | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resizing, "run_node", lambda _: [numbers])
    with pytest.raises(NoRule):
        nearest(free("row", 3), *scales(2 / 3))


def test_numbers_and_empty_tensors_have_no_rule() -> None:
    for x in (known(np.ones((2, 3)), np.float32), free("none", 0, 3)):
        with pytest.raises(NoRule):
            nearest(x, *scales(1, 2))


def test_the_runtime_is_noted() -> None:
    made = call("Resize", X, *scales(1, 2))
    RESIZING["Resize"](made)
    assert made.axioms == {"constants-by-runtime"}


def test_scales_that_are_not_known_are_named() -> None:
    with pytest.raises(Unproved, match="scales is not known"):
        nearest(X, None, free("scales", 2))
    with pytest.raises(Unproved, match="sizes of Resize is not known"):
        nearest(X, None, None, free("sizes", 2))


# --- other modes, over the reals ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "scale", "expected"), [(10, 0.7, 7), (10, 0.9, 9), (100, 0.29, 29), (7, 1 / 7, 1),
                                    (10, 0.75, 7), (3, 1.5, 4)]
)  # fmt: skip
def test_a_size_is_rounded_down_in_floats_of_32_bits(
    size: int, scale: float, expected: int
) -> None:
    assert smooth(free("x", size), *scales(scale)).shape == (expected,)


def test_axes_that_are_not_resized_keep_their_places() -> None:
    x = free("x", 2, 3, 4)
    made = smooth(x, *scales(1, 2, 1))
    assert (made.shape, made.dtype) == ((2, 6, 4), FLOAT)
    turned = CheckedTensor(FLOAT, (4, 3, 2), lambda: x.terms.transpose(2, 1, 0))
    other = smooth(turned, *scales(1, 2, 1))
    assert (made.terms == other.terms.transpose(2, 1, 0)).all()
    assert len(np.unique(made.terms)) == made.size


def test_an_element_depends_on_all_along_resized_axes_and_on_no_other() -> None:
    x = free("x", 2, 3)
    changed = x.terms.copy()
    changed[1, 2] = free("other").terms
    other = CheckedTensor(FLOAT, (2, 3), lambda: changed)
    one, two = smooth(x, *scales(1, 2)), smooth(other, *scales(1, 2))
    assert (one.terms[0] == two.terms[0]).all()
    assert (one.terms[1] != two.terms[1]).all()


def test_scales_are_the_second_operand_of_an_upsample_in_every_opset() -> None:
    for opset in (9, 13):
        node = call("Upsample", X, known([1, 2], np.float32), mode="linear", opset=opset)
        assert only(resize(node)).shape == (2, 6)


def test_a_size_beyond_floats_of_32_bits_is_another_one() -> None:
    assert smooth(free("x", 2**24 + 1), *scales(1)).shape == (2**24,)


def test_without_a_change_it_is_its_operand() -> None:
    assert smooth(X, *scales(1, 1)) is X
    assert smooth(X, *sizes(2, 3)) is X
    assert smooth(X, *scales(1, 1.1)) is not X  # 3 by 1.1 are 3 again, of other elements


@pytest.mark.parametrize(
    ("held", "default"),
    [
        ({"mode": "cubic"}, {}),
        ({"antialias": 1}, {"antialias": 0}),
        ({"coordinate_transformation_mode": "asymmetric"},
         {"coordinate_transformation_mode": "half_pixel"}),
        ({"cubic_coeff_a": -0.5}, {"cubic_coeff_a": -0.75}),
        ({"exclude_outside": 1}, {"exclude_outside": 0}),
        ({"extrapolation_value": 1.0}, {"extrapolation_value": 0.0}),
        ({"nearest_mode": "floor"}, {"nearest_mode": "round_prefer_floor"}),
    ],
)  # fmt: skip
def test_attributes_count_and_defaults_need_not_be_written(
    held: dict[str, Any], default: dict[str, Any]
) -> None:
    plain = smooth(X, *scales(1, 2))
    assert (smooth(X, *scales(1, 2), **default).terms == plain.terms).all()
    assert (smooth(X, *scales(1, 2), **held).terms != plain.terms).all()


def test_other_scales_to_one_size_differ() -> None:
    one, two = smooth(X, *scales(1, 2)), smooth(X, *scales(1, 2.1))
    assert one.shape == two.shape
    assert (one.terms != two.terms).all()
    assert (one.terms == smooth(X, *sizes(2, 6)).terms).all()


def test_coordinates_that_read_a_box_have_no_rule() -> None:
    with pytest.raises(NoRule):
        smooth(X, *scales(1, 2), coordinate_transformation_mode="tf_crop_and_resize")
