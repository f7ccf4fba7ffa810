"""Numbers and arrays as operands get the dtype that the operator demands, or are refused."""

from typing import Any

import numpy as np
import pytest

from tests.small import named, parsed
from tiered.graph import DataType, Graph, Value
from tiered.graph.edits.literals import as_operands
from tiered.support.errors import OperatorError

TEXT = """(float16[2] h, float[2] x, int64[2] i, bool[2] b, int8[2] k, string[2] s, uint4[2] n, bfloat16[2] f, bool c) =>
    (float[2] y) { y = Neg(x)  q = If(c) <then_branch = t () => (float[2] u) { u = Neg(x) },
    else_branch = e () => (float[2] v) { v = Abs(x) }> }"""


@pytest.fixture
def graph() -> Graph:
    return parsed(TEXT).main


def made(graph: Graph, op_type: str, *given: Any, domain: str = "") -> list[Any]:
    """Return the operands: names of values, arrays of constants."""
    held = [named(graph, each) if isinstance(each, str) else each for each in given]
    found = as_operands(graph, op_type, domain, held)
    return [
        None if each is None else each.name if each.graph is graph else each.const for each in found
    ]


def test_values_stay_what_they_are(graph: Graph) -> None:
    assert made(graph, "Clip", "x", None, "x") == ["x", None, "x"]


@pytest.mark.parametrize(
    ("op_type", "given", "place", "dtype", "number"),
    [
        ("Mul", ("h", 1.5), 1, np.float16, 1.5),
        ("Mul", (2, "x"), 0, np.float32, 2),
        ("Add", ("i", 3), 1, np.int64, 3),
        ("And", ("b", True), 1, np.bool_, True),
        ("Gather", ("x", np.array([1, 0])), 1, np.int64, [1, 0]),
        ("Clip", ("h", None, 6), 2, np.float16, 6),
        ("Mul", ("x", np.array([0.1, 0.2])), 1, np.float32, [0.1, 0.2]),
        ("Mul", ("x", np.array([1, 2])), 1, np.float32, [1, 2]),
        ("Sum", ("x", "x", 4), 2, np.float32, 4),
        ("Mul", ("x", float("inf")), 1, np.float32, np.inf),
        ("Reshape", ("x", np.array([2], np.int32)), 1, np.int64, [2]),
        ("Where", ("b", 1.5, "x"), 1, np.float32, 1.5),
        ("Mul", ("q", 2), 1, np.float32, 2),
        ("Add", ("k", -128), 1, np.int8, -128),
        ("Add", ("i", np.array([1.0])), 1, np.int64, [1]),
        ("Add", ("i", np.array([1.5])), 1, np.float64, [1.5]),
        ("Add", ("i", np.array([1], np.uint8)), 1, np.int64, [1]),
        ("Mul", ("x", np.array([True])), 1, np.bool_, [True]),
        ("StringConcat", ("s", np.array([1])), 1, np.int64, [1]),
        ("Mul", ("x", np.array([np.nan, np.inf])), 1, np.float32, [np.nan, np.inf]),
        ("Neg", ("x", np.array([1])), 1, np.int64, [1]),
        ("RandomNormal", (np.array([1]),), 0, np.int64, [1]),
        ("Cast", (np.array([1], np.int8),), 0, np.int8, [1]),
    ],
)
def test_a_number_gets_the_dtype_of_the_operand_that_shares_its_type(
    graph: Graph, op_type: str, given: tuple[Any, ...], place: int, dtype: Any, number: Any
) -> None:
    array = made(graph, op_type, *given)[place]
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, np.array(number, dtype))


def test_an_array_whose_numbers_would_change_keeps_its_dtype(graph: Graph) -> None:
    fraction = np.array([0.5], np.float32)
    assert made(graph, "Add", "i", fraction)[1].dtype == np.float32
    large = np.array([1e300])
    assert made(graph, "Mul", "x", large)[1].dtype == np.float64
    kept = made(graph, "Mul", "h", np.array([1 / 3], np.float32))[1]
    assert kept.dtype == np.float32


@pytest.mark.parametrize(
    ("op_type", "given", "because"),
    [
        ("Add", ("i", 1.5), "1.5, which int64 cannot hold"),
        ("Add", ("i", 2**70), "which int64 cannot hold"),
        ("Mul", ("h", 1e6), "which is too large for float16"),
        ("And", ("b", 1), "the number 1, where bool is expected"),
        ("Mul", ("x", True), "the number True, where float is expected"),
        ("Mul", (1, 2), "no other operand determines its dtype"),
        ("Mul", ("x", [1, 2]), "pass a value, an array, a number or None"),
        ("Add", ("i", 1.0), r"operand 1 \(B\) is 1.0, which int64 cannot hold"),
        ("Add", ("k", 128), r"operand 1 \(B\) is 128, which int8 cannot hold"),
        ("Mul", ("x", 10**400), r"operand 1 \(B\) is 10+, which float cannot hold"),
        ("StringConcat", ("s", 1), r"operand 1 \(Y\) is the number 1, where string is expected"),
        (
            "Neg",
            ("x", 3),
            r"operand 1 \(X\) is the number 3, and no other operand determines its dtype",
        ),
        ("RandomNormal", (3,), "operand 0 is the number 3, and no other operand determines its"),
        ("Gather", ("x", 1), r"operand 1 \(indices\) is the number 1, and no other operand"),
        ("Mul", (Value(0, None, "unknown"), 1), "and no other operand determines its dtype"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(
    graph: Graph, op_type: str, given: tuple[Any, ...], because: str
) -> None:
    with pytest.raises(OperatorError, match=because):
        made(graph, op_type, *given)


def test_an_unknown_operator_takes_arrays_but_no_numbers(graph: Graph) -> None:
    array = np.array([1, 2], np.int8)
    assert made(graph, "Any", "x", array, domain="vendor")[1] is not None
    with pytest.raises(OperatorError, match="operand 1 is the number 3"):
        made(graph, "Any", "x", 3, domain="vendor")


def test_a_constant_is_in_no_graph_yet(graph: Graph) -> None:
    (_, made_value) = as_operands(graph, "Mul", "", [named(graph, "x"), 2])
    assert isinstance(made_value, Value)
    assert made_value.graph is None
    assert made_value.dtype == DataType.FLOAT


def test_an_array_of_the_dtype_is_not_copied(graph: Graph) -> None:
    array = np.array([1, 2], np.float32)
    assert made(graph, "Mul", "x", array)[1] is array


def test_numbers_of_bfloat16_are_rounded_to_it(graph: Graph) -> None:
    (_, array) = made(graph, "Mul", "f", 1.5)
    assert (array.dtype, float(array)) == (DataType.BFLOAT16.numpy, 1.5)
    kept = made(graph, "Mul", "x", np.array([1.5]).astype(DataType.BFLOAT16.numpy))[1]
    assert kept.dtype == DataType.BFLOAT16.numpy
    with pytest.raises(OperatorError, match=r"is 1e.39, which is too large for bfloat16"):
        made(graph, "Mul", "f", 1e39)
