"""Branches, loops and scans: what a proof knows of what they compute."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tests.certify.test_checker import proof
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.rules.bit_arithmetic import abs_, add, neg
from tiered.certify.rules.flow import FLOW, MOST_TURNS

BODY = (
    "body = b (float[{row}] s, float[{row}] e) => (float[{row}] t, float[{row}] o) "
    "{{ t = Add(s, e)  o = Neg(t) }}"
)


def scan(row: str, held: str = "", y: str = "float[2,3] y") -> str:
    """Return a model that sums slices, and returns the last sum with all the negated ones."""
    return (
        f"(float[2,3] x, float[{row}] i) => (float[{row}] z, {y}) "
        f"{{ z, y = Scan<num_scan_inputs = 1{held}, {BODY.format(row=row)}>(i, x) }}"
    )


def steps(row: str, slices: list[str], stacked: str, y: str = "float[2,3] y") -> str:
    """Return the same model without a Scan: the slices of x in their order."""
    return (
        f"(float[2,3] x, float[{row}] i) => (float[{row}] z, {y}) "
        "<int64 n0 = {0}, int64 n1 = {1}, int64 n2 = {2}> { " + " ".join(slices) + f" {stacked} }}"
    )


def by_rows(order: tuple[int, int], axis: int = 0, *, backwards: bool = False) -> str:
    first, second = order
    outs = "o1, o0" if backwards else "o0, o1"
    return steps(
        "3",
        [
            f"e0 = Gather<axis = 0>(x, n{first}) e1 = Gather<axis = 0>(x, n{second})",
            "t0 = Add(i, e0) z = Add(t0, e1) u0 = Neg(t0) u1 = Neg(z)",
            f"a = Constant<value_ints = [{axis}]>()",
            "o0 = Unsqueeze(u0, a) o1 = Unsqueeze(u1, a)",
        ],
        f"y = Concat<axis = {axis}>({outs})",
        "float[2,3] y" if not axis else "float[3,2] y",
    )


def by_columns() -> str:
    return steps(
        "2",
        [
            *(f"e{at} = Gather<axis = 1>(x, n{at})" for at in range(3)),
            "t0 = Add(i, e0) t1 = Add(t0, e1) z = Add(t1, e2) a = Constant<value_ints = [0]>()",
            "u0 = Neg(t0) u1 = Neg(t1) u2 = Neg(z)",
            *(f"o{at} = Unsqueeze(u{at}, a)" for at in range(3)),
        ],
        "y = Concat<axis = 0>(o0, o1, o2)",
        "float[3,2] y",
    )


SAME = {
    "rows": (scan("3"), by_rows((0, 1))),
    "rows backwards": (scan("3", ", scan_input_directions = [1]"), by_rows((1, 0))),
    "outputs backwards": (
        scan("3", ", scan_output_directions = [1]"), by_rows((0, 1), backwards=True),
    ),
    "outputs as columns": (
        scan("3", ", scan_output_axes = [1]", "float[3,2] y"), by_rows((0, 1), 1),
    ),
    "outputs as the last axis": (
        scan("3", ", scan_output_axes = [-1]", "float[3,2] y"), by_rows((0, 1), 1),
    ),
    "columns": (scan("2", ", scan_input_axes = [1]", "float[3,2] y"), by_columns()),
    "the last axis": (scan("2", ", scan_input_axes = [-1]", "float[3,2] y"), by_columns()),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_a_scan_is_its_body_for_each_slice(name: str) -> None:
    assert proof(*SAME[name]).domain == "bits"


def test_a_scan_in_another_order_is_another_computation() -> None:
    assert proof(scan("3"), by_rows((1, 0))).domain == ""


# --- If -------------------------------------------------------------------------------------------


BOOL = int(onnx.TensorProto.BOOL)
X, N = free("x", 2), free("n", dtype=INT64)
ON, OFF, FLAG = known(True, np.bool_), known(False, np.bool_), free("flag", dtype=BOOL)
ONES = "g () => (p) { p = Constant<value_floats = [1.0, 1.0]>() }"
TWOS = "h () => (q) { q = Constant<value_floats = [2.0, 2.0]>() }"
LIST = "k () => (s) { c = Constant<value_floats = [1.0, 1.0]>()  s = SequenceConstruct(c) }"


def branch(condition: CheckedTensor, one: str, other: str) -> CheckedTensor:
    graphs = [onnx.parser.parse_graph(text) for text in (one, other)]
    node = call("If", condition, then_branch=graphs[0], else_branch=graphs[1])
    return only(FLOW["If"](node))


def test_a_known_condition_chooses_the_branch() -> None:
    for condition, number in ((ON, 1), (OFF, 2)):
        made = branch(condition, ONES, TWOS).known
        assert made is not None
        assert made.tolist() == [number] * 2


def test_an_unknown_condition_chooses_between_what_differs() -> None:
    assert branch(FLAG, ONES, ONES).known is not None
    made = branch(FLAG, ONES, TWOS)
    assert (made.known, made.shape, made.dtype) == (None, (2,), FLOAT)
    sides = [branch(condition, ONES, TWOS).terms for condition in (ON, OFF)]
    assert not any((made.terms == side).any() for side in sides)


@pytest.mark.parametrize(
    ("other", "because"),
    [
        ("h () => (q) { q = Constant<value_floats = [1.0]>() }", "results of different shapes"),
        ("h () => (q) { q = Constant<value_ints = [1, 1]>() }", "results of different shapes"),
        (LIST, "different sequences"),
    ],
)
def test_branches_of_different_types_are_not_chosen_between(other: str, because: str) -> None:
    for sides in ((ONES, other), (other, ONES)):
        with pytest.raises(Unproved, match=because):
            branch(FLAG, *sides)


# --- Loop -----------------------------------------------------------------------------------------


STATE = "(int64 i, bool k, float[2] s) => (bool l, float[2] t) {{ l = {}  t = Neg(s) }}"
ROWS = """(int64 i, bool k, float[2] s) => (bool l, float[2] t, float[2] u) {{
    l = {}  t = Neg(s)  u = Abs(s) }}"""
GROWS = """(int64 i, bool k, float[2] s) => (bool l, float[?] t, float[?] u) {
    l = Identity(k)  t = Concat<axis = 0>(s, s)  u = Identity(t) }"""
GOES_ON = "Identity(k)"


def looped(body: str, *inputs: CheckedTensor | None, unrolls: bool = False) -> list[Any]:
    graph = onnx.parser.parse_graph(f"b {body}")
    outputs = [f"y{at}" for at in range(len(graph.output) - 1)]
    return list(FLOW["Loop"](call("Loop", *inputs, outputs=outputs, unrolls=unrolls, body=graph)))


def keys(*held: Any) -> list[object]:
    return [each.key for each in looped(*held)]


@pytest.mark.parametrize("condition", [None, ON])
@pytest.mark.parametrize("goes_on", [GOES_ON, "Constant<value = bool {1}>()"])
def test_a_loop_of_a_known_trip_count_has_a_row_for_each(
    condition: CheckedTensor | None, goes_on: str
) -> None:
    found = looped(ROWS.format(goes_on), known(100), condition, X)
    assert [each.shape for each in found] == [(2,), (100, 2)]
    assert [each.shape for each in looped(STATE.format(goes_on), N, condition, X)] == [(2,)]


@pytest.mark.parametrize(
    ("body", "inputs", "because"),
    [
        (ROWS.format(GOES_ON), (None, None, X), "number of iterations is not known"),
        (ROWS.format(GOES_ON), (N, None, X), "number of iterations is not known"),
        (ROWS.format(GOES_ON), (known(100), FLAG, X), "number of iterations is not known"),
        (ROWS.format(GOES_ON), (known(100), OFF, X), "number of iterations is not known"),
        (ROWS.format("Not(k)"), (known(100), ON, X), "number of iterations is not known"),
        (
            ROWS.format("Constant<value = bool {0}>()"),
            (known(100), ON, X),
            "number of iterations is not known",
        ),
        (GROWS, (known(100), ON, X), "states of changing shapes"),
        (STATE.format(GOES_ON), (N, None, None), "no tensor"),
    ],
)
def test_a_loop_of_unknown_shapes_is_not_followed(
    body: str, inputs: tuple[CheckedTensor | None, ...], because: str
) -> None:
    with pytest.raises(Unproved, match=because):
        looped(body, *inputs)


def test_loops_are_the_same_if_bodies_and_operands_are() -> None:
    body = STATE.format(GOES_ON)
    same = keys(body, N, FLAG, X)
    assert keys(body.replace("t = Neg(s)", "a = Neg(s)  t = Identity(a)"), N, FLAG, X) == same
    for other in (
        (body.replace("Neg", "Abs"), N, FLAG, X),
        (STATE.format("Not(k)"), N, FLAG, X),
        (body, None, FLAG, X),
        (body, N, None, X),
        (body, N, FLAG, free("z", 2)),
    ):
        assert keys(*other) != same


def turns(count: int) -> Any:
    made = X
    for _ in range(count):
        made = only(neg(call("Neg", made)))
    return made.terms


@pytest.mark.parametrize(
    ("trips", "condition", "goes_on", "count"),
    [
        *((3, None, GOES_ON, 3), (1, ON, GOES_ON, 1), (3, OFF, GOES_ON, 0), (0, ON, GOES_ON, 0)),
        *((5, ON, "Less(i, one)", 2), (MOST_TURNS, ON, GOES_ON, MOST_TURNS)),
    ],
)
def test_a_loop_is_its_body_for_each_iteration(
    trips: int, condition: CheckedTensor | None, goes_on: str, count: int
) -> None:
    one = "one = Constant<value_int = 1>()  l ="
    body = STATE.format(goes_on).replace("l =", one, 1)
    made = only(looped(body, known(trips), condition, X, unrolls=True))
    assert (made.terms == turns(count)).all()


def test_an_unrolled_loop_stacks_its_rows() -> None:
    state, rows = looped(ROWS.format(GOES_ON), known(3), None, X, unrolls=True)
    assert (state.terms == turns(3)).all()
    assert (rows.terms == np.stack([only(abs_(call("Abs", X))).terms] * 3)).all()
    counted = """(int64 i, bool k, float[2] s) => (bool l, float[2] t, int64 u) {
        l = Identity(k)  t = Neg(s)  u = Identity(i) }"""
    _, numbers = looped(counted, known(3), None, X, unrolls=True)
    assert numbers.known.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("body", "inputs", "because"),
    [
        (ROWS.format(GOES_ON), (known(0), ON, X), "without iterations has scanned outputs"),
        (STATE.format(GOES_ON), (known(MOST_TURNS + 1), ON, X), "more than 64 iterations"),
        (STATE.format(GOES_ON), (N, ON, X), "the trip count of a Loop"),
        (STATE.format(GOES_ON), (known(3), FLAG, X), "the condition of a Loop"),
        (GROWS, (known(2), ON, X), "collects tensors of different shapes"),
    ],
)
def test_an_unrolled_loop_is_of_few_known_iterations(
    body: str, inputs: tuple[CheckedTensor | None, ...], because: str
) -> None:
    with pytest.raises(Unproved, match=because):
        looped(body, *inputs, unrolls=True)


# --- Scan -----------------------------------------------------------------------------------------


def scanned(body: str, *inputs: CheckedTensor, **held: Any) -> list[Any]:
    graph = onnx.parser.parse_graph(f"b {body}")
    outputs = [f"y{at}" for at in range(len(graph.output))]
    node = call("Scan", *inputs, outputs=outputs, num_scan_inputs=1, body=graph, **held)
    return list(FLOW["Scan"](node))


ADDS = "(float[2] s, float[2] e) => (float[2] t, float[2] o) { t = Add(s, e)  o = Neg(t) }"


@pytest.mark.parametrize("opset", [9, 21])
@pytest.mark.parametrize("unrolls", [False, True])
def test_a_scan_has_a_row_for_each_slice(opset: int, unrolls: bool) -> None:
    for length in (1, 3):
        found = scanned(ADDS, X, free("rows", length, 2), opset=opset, unrolls=unrolls)
        assert [each.shape for each in found] == [(2,), (length, 2)]
        if unrolls and length == 1:
            row = free("rows", 1, 2)
            total = only(add(call("Add", X, row)))
            assert (found[0].terms == total.terms[0]).all()


@pytest.mark.parametrize("unrolls", [False, True])
@pytest.mark.parametrize(
    ("held", "rows", "shape"),
    [
        ({"scan_input_axes": [1]}, (2, 3), (3, 2)),
        ({"scan_input_axes": [-1]}, (2, 3), (3, 2)),
        ({"scan_output_axes": [1]}, (3, 2), (2, 3)),
        ({"scan_output_axes": [-1]}, (3, 2), (2, 3)),
        ({"scan_output_axes": [-2]}, (3, 2), (3, 2)),
    ],
)
def test_the_axes_of_a_scan_are_counted_from_either_end(
    held: dict[str, list[int]], rows: tuple[int, int], shape: tuple[int, int], unrolls: bool
) -> None:
    found = scanned(ADDS, X, free("rows", *rows), unrolls=unrolls, **held)
    assert [each.shape for each in found] == [(2,), shape]


@pytest.mark.parametrize(
    ("body", "length", "held", "because"),
    [
        (ADDS, 3, {"opset": 8}, "Scan of an old opset"),
        (ADDS, 3, {"opset": 8, "unrolls": True}, "Scan of an old opset"),
        (ADDS, 0, {"unrolls": True}, "a Scan of 0 iterations"),
        (ADDS, MOST_TURNS + 1, {"unrolls": True}, "a Scan of 65 iterations"),
        (ADDS.replace("Add(s, e)", "Concat<axis = 0>(s, e)"), 3, {}, "states of changing shapes"),
    ],
)
def test_a_scan_is_of_few_rows_and_fixed_states(
    body: str, length: int, held: dict[str, Any], because: str
) -> None:
    with pytest.raises(Unproved, match=because):
        scanned(body, X, free("rows", length, 2), **held)
