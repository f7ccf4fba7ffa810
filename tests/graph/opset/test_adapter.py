"""The rows that convert one form of an operator into another, read and written one by one."""

import warnings
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import named, parsed
from tiered.graph import Tensor, Value
from tiered.graph.core.schema import AttributeReference
from tiered.graph.opset.adapter import (
    NoEquivalentForm,
    OperatorForm,
    OpsetChange,
    absent,
    contents,
    detached,
    drop_empty,
    moved,
    negative_axes,
    never,
    only_as,
    renamed,
    says_the_same,
    value_since,
)


def form(
    *operands: Value | None, op_type: str = "Op", version: int = 9, **attributes: Any
) -> OperatorForm:
    return OperatorForm(op_type, version, list(operands), attributes)


def c(array: Any, dtype: Any = np.int64) -> Value:
    return detached(np.array(array, dtype))


def x_of(text: str) -> Value:
    """Return the value x of a model with this input."""
    return named(parsed(f"({text} x) => ({text} y) {{ y = Identity(x) }}"), "x")


def declined(change: OpsetChange, of: OperatorForm) -> str:
    with pytest.raises(NoEquivalentForm) as caught:
        change.write(of)
    return str(caught.value)


# --- forms ----------------------------------------------------------------------------------------


def test_operands_that_are_not_there_are_absent() -> None:
    a = c(1)
    made = form(a, None)
    assert [made.operand(place) for place in range(3)] == [a, None, None]
    made.set_operand(3, a)
    assert made.operands == [a, None, None, a]
    made.set_operand(3, None)
    assert made.operands == [a]
    made.set_operand(0, None)
    assert made.operands == []
    assert made.numbers(0) is None
    assert (made.shape, made.rank) == (None, None)


def test_a_form_has_the_shape_of_its_first_operand() -> None:
    made = form(x_of("float[2,N]"))
    assert (made.shape, made.rank) == ((2, "N"), 2)
    assert (made.target, made.version, made.n_outputs) == (9, 9, None)


def test_a_decline_names_operator_and_opset() -> None:
    assert str(form(op_type="Pad").declines("is late")) == "Pad is late (opset 9)"


# --- contents -------------------------------------------------------------------------------------

CONTENTS = """(float[N,3] x, int64[2] i) => (int64[?] y)
    <float[2,1] w = {1.5,2}, int64[2] k = {4,5}, int64[2] k2 = {2,1}, float16[2] h = {0,15360}, float8e4m3fn[1] e = {56}> {
    s = Shape(x)  last = Shape<start=1>(x)  sum = Add(k, last)
    flat = Flatten(w)  again = Reshape(flat, k2)  twice = Mul(w, w)  half = Cast<to=10>(w)
    like = CastLike(h, w)  exp = Exp(w)  tiny = Cast<to=17>(w)  foreign = com.microsoft.Cast(w)
    free = Reshape(w, i)  y = Add(s, sum) }"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("w", [[1.5], [2]]), ("k", [4, 5]), ("last", [3]), ("sum", [7, 8]), ("flat", [[1.5], [2]]),
        ("again", [[1.5], [2]]), ("half", [[1.5], [2]]), ("like", [0, 1]),
        ("s", None), ("y", None), ("x", None), ("twice", None), ("exp", None), ("tiny", None),
        ("foreign", None), ("free", None),
    ],
)  # fmt: skip
def test_numbers_that_are_known(name: str, expected: object) -> None:
    found = contents(named(parsed(CONTENTS), name))
    assert (None if found is None else found.tolist()) == expected


def test_numbers_have_the_dtype_of_their_value() -> None:
    model = parsed(
        "(float[N,3] x) => (int32[1] y, bool[1] b, float16[2] h) <int64[1] o = {1}, float[2] w = {1,2}> {"
        " s = Shape<start=1>(x) y = Cast<to=6>(s) b = Greater(s, o) h = Cast<to=10>(w) }"
    )
    dtypes = [found.dtype for name in "ybh" if (found := contents(named(model, name))) is not None]
    assert dtypes == [np.int32, np.bool_, np.float16]


@pytest.mark.parametrize(("steps", "is_known"), [(8, True), (9, False)])
def test_a_chain_of_at_most_8_nodes_is_followed(steps: int, is_known: bool) -> None:
    nodes = " ".join(f"v{at + 1} = Identity(v{at})" for at in range(steps))
    model = parsed(f"(float[2] x) => (float[2] v{steps}) <float[2] v0 = {{1,2}}> {{ {nodes} }}")
    assert (contents(named(model, f"v{steps}")) is not None) is is_known


@pytest.mark.parametrize(("size", "is_known"), [(1024, True), (1025, False)])
def test_at_most_1024_elements_are_looked_at(size: int, is_known: bool) -> None:
    numbers = ",".join(["1"] * size)
    model = parsed(
        f"(float x) => (float[{size}] y) <float[{size}] w = {{{numbers}}}> {{ y = Identity(w) }}"
    )
    assert (contents(named(model, "y")) is not None) is is_known
    assert contents(named(model, "w")) is not None


def test_a_detached_constant_has_its_numbers() -> None:
    value = c([1, 2])
    found = contents(value)
    assert found is not None
    assert found.tolist() == [1, 2]
    assert value.graph is None
    assert contents(Value(0, None, "parameter")) is None


# --- attributes that became operands --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "raw", "dtype", "shape"),
    [
        ("int64", [1, 2], np.int64, (2,)),
        ("int64 [1]", 3, np.int64, (1,)),
        ("int64 []", 3, np.int64, ()),
        ("float", [0.5, 1], np.float32, (2,)),
        ("float", 0.5, np.float32, ()),
        ("like x", 0.5, np.float32, ()),
    ],
)
def test_an_attribute_is_read_as_an_operand_and_written_back(
    kind: str, raw: Any, dtype: type, shape: tuple[int, ...]
) -> None:
    row, made = moved(1, "k", 13, kind), form(None, k=raw)
    row.read(made)
    found = made.numbers(1)
    assert found is not None
    assert (found.dtype, found.shape, made.attributes) == (dtype, shape, {})
    assert found.tolist() == raw or found.tolist() == [raw]
    row.write(made)
    assert (made.operands, made.attributes) == ([], {"k": raw})
    assert row.since == 13


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float16", -np.inf), ("double", -3.4e38), ("float", np.float32(-3.4e38))],
)
def test_a_number_like_x_has_its_dtype(dtype: str, expected: float) -> None:
    made = form(x_of(f"{dtype}[2]"), min=-3.4e38)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved(1, "min", 11, "like x").read(made)
    found = made.numbers(1)
    assert found is not None
    assert found.dtype == np.dtype(dtype.replace("float", "float32") if dtype == "float" else dtype)
    assert found.item() == expected


def test_a_scalar_where_a_list_is_due_is_a_list() -> None:
    made = form(c(5))
    moved(0, "k", 13, "int64").write(made)
    assert made.attributes == {"k": [5]}


def test_an_absent_attribute_is_an_absent_operand() -> None:
    row, made = moved(1, "k", 13, "int64"), form(c(0))
    row.read(made)
    row.write(made)
    assert (len(made.operands), made.attributes) == (1, {})


def test_a_function_parameter_is_present_but_not_known() -> None:
    made = form(c(0), k=AttributeReference("p"))
    row = moved(1, "k", 13, "int64")
    row.read(made)
    assert made.operand(1) is not None
    assert declined(row, made) == "Op needs a constant k before opset 13 (opset 9)"


@pytest.mark.parametrize("kind", ["int64 [1]", "int64 []", "like x", "float"])
def test_one_number_is_written_of_one_number(kind: str) -> None:
    row = moved(0, "k", 13, kind)
    made = form(c([5], np.float32 if kind in ("like x", "float") else np.int64))
    row.write(made)
    assert made.attributes == {"k": 5 if kind != "float" else [5]}
    if kind != "float":
        because = "Op needs one number as k before opset 13 (opset 9)"
        assert declined(row, form(c([1, 2]))) == because


@pytest.mark.parametrize(
    ("array", "fits"),
    [
        (np.array(1 << 24), True),
        (np.array(-(1 << 24)), True),
        (np.array((1 << 24) + 1), False),
        (np.array(-(1 << 24) - 1), False),
        (np.array(0.5), True),
        (np.array(0.1), False),
        (np.array(1e300), False),
        (np.array(np.nan), True),
        (np.array(np.inf), True),
        (np.array(0.1, np.float32), True),
        (np.array(0.1, np.float16), True),
        (np.array(True), True),
    ],
)
def test_an_attribute_is_a_float32(array: np.ndarray, fits: bool) -> None:
    row, made = moved(0, "k", 13, "like x"), form(detached(array))
    if fits:
        row.write(made)
        assert made.attributes["k"] == array.item() or np.isnan(array)
    else:
        assert declined(row, made) == "Op has k as a float32 before opset 13 (opset 9)"


# --- other rows -----------------------------------------------------------------------------------


def test_a_new_operand_has_the_older_meaning_only_by_default() -> None:
    row = absent(1, 11, lambda array: (array == 0).all())
    for operands in ((c(1),), (c(1), None), (c(1), c([0, 0]))):
        made = form(*operands)
        row.write(made)
        assert made.operand(1) is None
    for other in (c([0, 1]), x_of("int64[2]")):
        assert declined(row, form(c(1), other)) == "Op has no operand 1 before opset 11 (opset 9)"
    row.read(made)
    assert made.operand(1) is None


def test_a_new_value_of_an_attribute_has_no_older_form() -> None:
    row = value_since("mode", "wrap", 19)
    made = form(mode="edge")
    row.write(made)
    assert made.attributes == {"mode": "edge"}
    row.write(form())
    assert declined(row, form(mode="wrap")) == "Op has no mode='wrap' before opset 19 (opset 9)"


def test_a_new_attribute_with_the_older_behaviour_as_a_value() -> None:
    row, made = only_as("round", 1, 12), form()
    row.read(made)
    assert made.attributes == {"round": 1}
    row.write(made)
    assert made.attributes == {}
    unlike: list[dict[str, Any]] = [{}, {"round": 0}]
    for attributes in unlike:
        because = "Op means round=1 before opset 12 (opset 9)"
        assert declined(row, form(**attributes)) == because


def test_values_of_an_attribute_have_new_names() -> None:
    row = renamed("mode", {"old": "new", "b": "B"}, 11)
    read: list[tuple[dict[str, Any], str]] = [
        ({}, "new"), ({"mode": "b"}, "B"), ({"mode": "other"}, "other")
    ]  # fmt: skip
    for older, newer in read:
        made = form(**older)
        row.read(made)
        assert made.attributes == {"mode": newer}
    written: list[tuple[dict[str, Any], str]] = [
        ({}, "old"), ({"mode": "B"}, "b"), ({"mode": "other"}, "other")
    ]  # fmt: skip
    for newest, oldest in written:
        made = form(**newest)
        row.write(made)
        assert made.attributes == {"mode": oldest}


def test_an_operator_of_another_meaning_is_never_converted() -> None:
    row = never(9, "means something else")
    assert declined(row, form()) == "Op means something else (opset 9)"
    with pytest.raises(NoEquivalentForm, match="something else"):
        row.read(form())


@pytest.mark.parametrize(
    ("op_type", "axes", "expected"),
    [
        ("Squeeze", [-1, 0], [2, 0]),
        ("Unsqueeze", [-1, 0], [4, 0]),
        ("ArgMax", -3, 0),
        ("ArgMax", 1, 1),
        ("Squeeze", [0, 1], [0, 1]),
    ],
)
def test_axes_are_counted_from_the_front(op_type: str, axes: object, expected: object) -> None:
    made = form(x_of("float[2,3,4]"), op_type=op_type, axes=axes)
    negative_axes("axes").write(made)
    assert made.attributes == {"axes": expected}
    assert negative_axes("axes").since == 11


def test_axes_from_the_end_need_a_rank() -> None:
    row, unknown = negative_axes("axes"), x_of("float[]")
    because = "Op needs a known rank to count axes from the front (opset 9)"
    assert declined(row, form(unknown, axes=[-1])) == because
    assert declined(row, form(unknown, axes=-1)) == because
    made = form(unknown, axes=[0, 1])
    row.write(made)
    row.write(form(unknown))
    assert made.attributes == {"axes": [0, 1]}


def test_a_row_without_a_function_changes_nothing() -> None:
    made = form(c(1), k=1)
    row = OpsetChange(11)
    row.read(made)
    row.write(made)
    says_the_same(made)
    assert (len(made.operands), made.attributes) == (1, {"k": 1})


# --- what is not there ----------------------------------------------------------------------------


def test_operands_that_are_known_to_be_empty_are_left_out() -> None:
    empty, one = c([]), c([1])
    made = form(empty, empty, one, empty, None, x_of("float[0]"), x_of("float[0,2]"))
    drop_empty(made, 1, 2, 3, 4, 5, 6, 7)
    assert made.operands[:1] == [empty]
    assert made.operands[1:] == [None, one, None, None, None, made.operands[6]]
    assert made.operand(6) is not None


def test_contents_of_values_that_have_none() -> None:
    weights = onnx.helper.make_tensor("v", 7, [1], [2])
    places = onnx.helper.make_tensor("i", 7, [1], [0])
    sparse = c(1)
    sparse._tensor = Tensor(onnx.helper.make_sparse_tensor(weights, places, [3]))
    assert contents(sparse) is None
    model = parsed(
        """(int64[K] x) => (float[?] y) <string[2] s = {"1", "2"}, float[2] w = {1,2}> {
        a = Cast<to=1>(s)  b = Reshape(w, x)  d = Cast<to=16>(w)  e = Cast<to=7>(w)  f = Flatten(e)
        g = Cast<to=1>(f)  y = Neg(w) }"""
    )
    found = {name: contents(named(model, name)) for name in "abdefg"}
    assert {name: None if each is None else each.tolist() for name, each in found.items()} == {
        "a": None, "b": None, "d": [1, 2], "e": [1, 2], "f": [[1], [2]], "g": None
    }  # fmt: skip


def test_floats_that_are_no_float32_are_refused_only_like_x() -> None:
    for kind, expected in (("like x", None), ("float", 0.1)):
        made, row = form(c(0.1, np.float64)), moved(0, "k", 13, kind)
        if expected is None:
            assert declined(row, made) == "Op has k as a float32 before opset 13 (opset 9)"
        else:
            row.write(made)
            assert made.attributes == {"k": expected}
    assert made.operands == []
    made.set_operand(2, c(1))
    assert len(made.operands) == 3
