"""Windows: where a kernel reads, at which counts of places, and what is a pad."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.certify.call import call
from tiered.certify.domains.terms import leaf, listed, seed_of
from tiered.certify.evaluation.values import Unproved
from tiered.certify.rules.kernel_windows import KernelWindows, window_of


def places(op: str, shape: Sequence[int], kernel: Sequence[int], **attributes: Any) -> list[Any]:
    made: list[Any] = window_of(call(op, **attributes), shape, kernel).places.tolist()
    return made


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [[0, 1, 2], [1, 2, 3], [2, 3, 4]]),
        ({"strides": [2]}, [[0, 1, 2], [2, 3, 4]]),
        ({"strides": [3]}, [[0, 1, 2]]),
        ({"dilations": [2]}, [[0, 2, 4]]),
        ({"pads": [1, 0]}, [[-1, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]),
        ({"pads": [0, 2]}, [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, -1], [4, -1, -1]]),
        ({"pads": [0, 2], "auto_pad": "VALID"}, [[0, 1, 2], [1, 2, 3], [2, 3, 4]]),
        ({"auto_pad": "SAME_UPPER", "strides": [2]}, [[-1, 0, 1], [1, 2, 3], [3, 4, -1]]),
        ({"auto_pad": "SAME_UPPER", "strides": [4]}, [[-1, 0, 1], [3, 4, -1]]),
        (
            {"auto_pad": "SAME_LOWER", "dilations": [2], "strides": [3]},
            [[-1, 0, 2], [1, 3, -1]],
        ),
        ({"auto_pad": "NOTSET", "pads": [1, 1], "strides": [4]}, [[-1, 0, 1], [3, 4, -1]]),
    ],
)
def test_a_kernel_of_three_reads_five_elements(
    attributes: dict[str, Any], expected: list[list[int]]
) -> None:
    assert places("Conv", (1, 1, 5), [3], **attributes) == expected


@pytest.mark.parametrize(
    ("auto", "expected"),
    [
        ("SAME_UPPER", [[0, 1], [1, 2], [2, -1]]),
        ("SAME_LOWER", [[-1, 0], [0, 1], [1, 2]]),
    ],
)
def test_an_odd_pad_is_after_or_before(auto: str, expected: list[list[int]]) -> None:
    assert places("Conv", (1, 1, 3), [2], auto_pad=auto) == expected


def test_the_same_padding_is_none_where_strides_leave_a_gap() -> None:
    assert places("Conv", (1, 1, 4), [1], auto_pad="SAME_UPPER", strides=[2]) == [[0], [2]]


@pytest.mark.parametrize(
    ("size", "attributes", "count"),
    [
        (5, {"strides": [2]}, 2),
        (6, {"strides": [2]}, 2),
        (6, {"strides": [2], "ceil_mode": 1}, 3),
        (5, {"strides": [2], "ceil_mode": 1}, 2),
        # A last window that begins in the pads after the tensor is none.
        (4, {"strides": [4], "ceil_mode": 1, "pads": [0, 1]}, 1),
        (5, {"strides": [4], "ceil_mode": 1, "pads": [0, 1]}, 2),
        (4, {"strides": [5], "ceil_mode": 1, "pads": [1, 1]}, 1),
        (2, {}, 0),
        (5, {"pads": [0, 3]}, 6),  # without ceil_mode a window may read pads alone
        (5, {"pads": [0, 3], "ceil_mode": 1}, 5),
        (3, {}, 1),
        (1, {"strides": [4]}, 0),
    ],
)
def test_places_are_counted(size: int, attributes: dict[str, Any], count: int) -> None:
    windows = window_of(call("MaxPool", **attributes), (1, 1, size), [3])
    assert windows.counts == [count]
    assert windows.places.shape == (count, 3)
    assert list(windows.pads) == attributes.get("pads", [0, 0])


def test_two_axes_are_walked_in_the_order_of_memory() -> None:
    windows = window_of(call("Conv", pads=[1, 0, 0, 1]), (1, 1, 2, 3), [2, 3])
    assert windows.counts == [2, 2]
    assert windows.places.tolist() == [
        [-1, -1, -1, 0, 1, 2],
        [-1, -1, -1, 1, 2, -1],
        [0, 1, 2, 3, 4, 5],
        [1, 2, -1, 4, 5, -1],
    ]


def test_the_attribute_says_the_kernel() -> None:
    assert places("Conv", (1, 1, 3), [3], kernel_shape=[2]) == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("shape", "kernel"), [((1, 1, 3), [3, 3]), ((0, 1, 3), [3]), ((1, 1, 0), [3])]
)
def test_a_kernel_that_does_not_fit_has_no_windows(
    shape: tuple[int, ...], kernel: list[int]
) -> None:
    with pytest.raises(Unproved, match="Conv of an empty tensor, or of another rank"):
        window_of(call("Conv"), shape, kernel)


def test_negative_pads_have_no_windows() -> None:
    with pytest.raises(Unproved, match="Conv with negative pads"):
        window_of(call("Conv", pads=[0, -1]), (1, 1, 5), [3])
    assert window_of(call("Conv"), (1, 1), []).places.tolist() == [[0]]


def test_a_window_is_the_list_of_its_elements() -> None:
    seed = seed_of("list of a test")
    x, filler = leaf(seed_of("numbers"), (2, 4, 5, 6)), leaf(seed_of("filler"), ())
    windows = KernelWindows((5, 6), (3, 2), (2, 1), (1, 2), (1, 0, 1, 1))
    whole = np.concatenate([x.reshape(2, 4, -1), np.broadcast_to(filler, (2, 4, 1))], axis=2)
    lists = whole[:, :, windows.places].reshape(2, 2, 2, *windows.places.shape)
    lists = lists.transpose(0, 1, 3, 2, 4).reshape(2, 2, len(windows.places), -1)
    assert (windows.rows(seed, x, filler, 2) == listed(seed, lists)).all()


def test_the_elements_of_windows_have_a_filler_for_pads() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3) + 1
    windows = KernelWindows((3,), (2,), (2,), (1,), (1, 0))
    found = windows.lists(x, np.asarray(-5, np.float32))
    assert found.tolist() == [[[[-5, 1], [2, 3]], [[-5, 4], [5, 6]]]]
