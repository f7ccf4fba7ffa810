"""Entries of profiles: each value is what its reader expects, or an error that says where."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from tiered.graph import DataType
from tiered.support.errors import BackendError
from tiered.targets.entries import (
    TomlTable,
    boolean,
    bounds,
    bounds_from,
    bounds_of_elements,
    checked,
    count,
    dtype,
    dtypes_in,
    integer,
    number,
    one_of,
    pairs_of_dtypes,
    sequence,
    string,
    strings,
)
from tiered.targets.operator_rule import Bounds

FLOAT, HALF, BYTE = (int(DataType[name]) for name in ("FLOAT", "FLOAT16", "UINT8"))
GROUPS = {"floats": frozenset({FLOAT, HALF})}


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (string, "a", "a"),
        (integer, 3, 3),
        (boolean, False, False),
        (sequence, [1], [1]),
        (number, 3, 3.0),
        (number, 0.5, 0.5),
        (strings, "a", ("a",)),
        (strings, ["a", "b"], ("a", "b")),
        (count, 0, 0),
        (bounds, 3, Bounds(3, 3)),
        (bounds, [3], Bounds(3, None)),
        (bounds, [3, 5], Bounds(3, 5)),
        (bounds, {"min": 3}, Bounds(3, None)),
        (bounds, {"max": 5}, Bounds(None, 5)),
        (bounds, {"min": 3, "max": 5}, Bounds(3, 5)),
        (bounds_from(1), [1, 5], Bounds(1, 5)),
        (bounds_from(1), {"min": 3}, Bounds(3)),
        (bounds_from(1), 3, Bounds(3, 3)),
        (bounds_from(1), {}, Bounds()),
        (bounds_of_elements, [0.5, 2], Bounds(0.5, 2)),
        (one_of(Literal["a", "b"]), "b", "b"),
        (dtype, "uint8", BYTE),
        (dtypes_in(GROUPS), ["floats", "uint8"], {FLOAT, HALF, BYTE}),
        (dtypes_in(GROUPS), "floats", {FLOAT, HALF}),
        (dtypes_in(GROUPS), [], frozenset()),
        (pairs_of_dtypes, {"float": "float16"}, {FLOAT: HALF}),
    ],
)
def test_a_value_is_read(read: Callable[[Any], Any], value: Any, expected: Any) -> None:
    assert checked(read, value, "here") == expected


@pytest.mark.parametrize(
    ("read", "value", "because"),
    [
        (string, 3, "expected a string, not 3"),
        (integer, True, "expected an integer, not True"),
        (boolean, 1, "expected true or false, not 1"),
        (number, True, "expected a number, not True"),
        (number, "1", "expected a number, not '1'"),
        (strings, ["a", 3], "expected a string or a list of strings"),
        (strings, 3, "expected a string or a list of strings"),
        (count, -1, "expected an integer from 0, not -1"),
        (bounds, [5, 3], "expected the lower end first"),
        (bounds, [1, 2, 3], "expected"),
        (bounds, [1.5, 2], "expected"),
        (bounds, True, "expected"),
        (bounds, {"low": 3}, "expected"),
        (bounds_from(1), [0, 5], "expected numbers from 1"),
        (bounds_from(1), [3], "expected .low, high. or .min = low, max = high."),
        (one_of(Literal["a", "b"]), "c", "expected one of a, b"),
        (dtype, "fp32", "ONNX calls fp32 'float'"),
        (dtype, "uint9", "no dtype 'uint9'; did you mean 'uint"),
        (dtype, ["float"], "no dtype .'float'."),
        (dtypes_in(GROUPS), ["none"], "no dtype 'none'"),
    ],
)
def test_another_value_is_an_error_with_its_place(
    read: Callable[[Any], Any], value: Any, because: str
) -> None:
    with pytest.raises(BackendError, match=f"here: {because}"):
        checked(read, value, "here")


def test_keys_are_taken_one_by_one_and_one_that_remains_is_an_error() -> None:
    table = TomlTable({"name": "a", "inner": {"size": 3}}, "profile")
    assert table.take("name", string, "") == "a"
    assert table.take("other", string, "default") == "default"
    inner = table.table("inner")
    table.end()
    with pytest.raises(BackendError, match=r"profile: inner: unknown key 'size' \(there are \)"):
        inner.end()
    assert inner.take("size", integer, 0) == 3
    inner.end()
    empty = table.table("lacking")
    empty.end()
    assert empty.where == "profile: lacking"


def test_the_closest_known_key_is_proposed() -> None:
    table = TomlTable({"naem": "a"}, "profile")
    table.take("name", string, "")
    table.take("size", integer, 0)
    with pytest.raises(BackendError, match=r"did you mean 'name'.*there are name, size"):
        table.end()
