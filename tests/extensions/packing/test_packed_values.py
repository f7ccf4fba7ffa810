"""Abstract values of packing: the roles of axes, and what follows from them."""

import pytest

from tiered.extensions.packing.packed_values import (
    FLATTENED,
    AbstractTensor,
    AxisRole,
    PackedSizes,
    Roles,
)

B, T, F, Q, H = (
    AxisRole.BATCH,
    AxisRole.TOKEN,
    AxisRole.FLAT,
    AxisRole.SEQUENCE_FIRST,
    AxisRole.HEADS,
)


@pytest.mark.parametrize(
    ("roles", "is_constant", "has_batch", "is_positional"),
    [
        ((), True, False, False),
        ((None, None), True, False, False),
        ((B, T, None), False, True, False),
        ((B,), False, True, False),
        ((H, T, T), False, True, False),
        ((F, None), False, True, False),
        ((Q, None), False, True, False),
        ((T, None), False, False, True),
        ((T, T), False, False, True),
    ],
)
def test_roles_say_on_what_a_tensor_depends(
    roles: Roles, *, is_constant: bool, has_batch: bool, is_positional: bool
) -> None:
    tensor = AbstractTensor(roles)
    assert tensor.is_constant == is_constant
    assert tensor.has_batch == has_batch
    assert tensor.is_positional == is_positional


def test_the_axes_with_a_role_are_in_order() -> None:
    tensor = AbstractTensor((B, T, None, T))
    assert tensor.places(T) == (1, 3)
    assert tensor.places(B) == (0,)
    assert tensor.places(H) == ()


def test_a_plain_relation_is_of_the_roles_alone() -> None:
    whole = AbstractTensor(
        (B, T), zeros=1, index=(1, 2), is_row_number=True, columns=((1, 0),), is_pooled=True
    )
    plain = whole.plain()
    assert plain == AbstractTensor((B, T), is_row_number=True, is_pooled=True)


def test_a_flattened_axis_knows_the_order_of_its_two() -> None:
    assert FLATTENED == {F: (B, T), Q: (T, B)}


def test_sizes_are_of_rows_unless_said_otherwise() -> None:
    assert not PackedSizes().is_pooled
    assert AbstractTensor((B,)) == AbstractTensor((B,), None, None, False, None, False, None)
