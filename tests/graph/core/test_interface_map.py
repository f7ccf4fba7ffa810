"""Maps of two edits of the interface become one."""

import pytest

from tiered.graph.core.interface_map import (
    BatchMap,
    Convert,
    InterfaceMap,
    ListMap,
    PackMap,
    converted,
)


def times(factor: int) -> Convert:
    return lambda array: array * factor


def plus(addend: int) -> Convert:
    return lambda array: array + addend


def test_a_tensor_goes_back_through_both_edits_in_their_order() -> None:
    earlier = InterfaceMap({"b": ("a", times(10))})
    whole = InterfaceMap({"c": ("b", plus(1))}).after(earlier)
    source, convert = whole.tensors["c"]
    assert source == "a"
    assert converted(convert, 2) == 21
    assert whole.tensors["b"][0] == "a"


def test_an_input_before_is_computed_from_the_newest_the_last_edit_first() -> None:
    earlier = InterfaceMap(feeds={"a": ("b", times(10))})
    later = InterfaceMap(feeds={"b": ("c", plus(1)), "d": ("e", None)})
    whole = later.after(earlier)
    source, convert = whole.feeds["a"]
    assert source == "c"
    assert converted(convert, 2) == 30
    assert whole.feeds["d"] == ("e", None)


@pytest.mark.parametrize(("first", "second"), [(None, times(3)), (times(3), None)])
def test_one_conversion_stays_as_it_is(first: Convert | None, second: Convert | None) -> None:
    earlier = InterfaceMap({"b": ("a", first)})
    _, convert = InterfaceMap({"c": ("b", second)}).after(earlier).tensors["c"]
    assert converted(convert, 2) == 6


def test_without_a_conversion_the_array_is_the_same() -> None:
    array = object()
    assert converted(None, array) is array


def test_a_batch_has_the_names_before_an_earlier_edit() -> None:
    batch = BatchMap(2, {"new": 0, "x": 1}, {"out": (0, 1, 1), "list": ListMap(0, (1,))})
    earlier = InterfaceMap({"new": ("old", None), "out": ("before", None)})
    whole = InterfaceMap(batch=batch).after(earlier)
    assert whole.batch == BatchMap(
        2, {"old": 0, "x": 1}, {"before": (0, 1, 1), "list": ListMap(0, (1,))}
    )


def test_of_two_batches_the_first_counts() -> None:
    first, second = (InterfaceMap(batch=BatchMap(size, {}, {})) for size in (2, 4))
    assert second.after(first).batch == first.batch


PACKED = PackMap(("x",), frozenset({"y"}))


def test_packed_rows_alone_can_be_compared() -> None:
    for one, other in (
        (InterfaceMap(), InterfaceMap(packed=PACKED)),
        (InterfaceMap(packed=PACKED), InterfaceMap()),
    ):
        whole = one.after(other)
        assert (whole.packed, whole.new) == (PACKED, "")


@pytest.mark.parametrize(
    "other",
    [
        InterfaceMap({"a": ("b", None)}),
        InterfaceMap(feeds={"a": ("b", None)}),
        InterfaceMap(batch=BatchMap(1, {}, {})),
    ],
)
def test_packed_rows_and_another_change_cannot(other: InterfaceMap) -> None:
    assert "rows hold several" in InterfaceMap(packed=PACKED).after(other).new


def test_why_a_map_cannot_be_compared_stays_said() -> None:
    reason = InterfaceMap(new="because")
    assert reason.after(InterfaceMap()).new == InterfaceMap().after(reason).new == "because"
    assert InterfaceMap(new="now").after(reason).new == "now"
