"""Trip counts of loops whose condition follows from constants and the loop's own numbers."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import parsed
from tiered import Model, Node
from tiered.graph.shape_inference.rules.control_flow_types import BODY_DECIDES
from tiered.runtime.fold.trip_count import _is_exact, _is_number, trip_count_of

CONSTANTS = """int64 one = {1}, int64 two = {2}, int64 five = {5}, float half = {0.5},
    float f = {1}, bool yes = {1}, bool no = {0}, int64[2] pair = {1,2}, uint8 byte = {250},
    uint8 step = {3}"""


def loop(
    body: str, state: str = "one", limit: str = "", condition: str = "", kind: str = "int64"
) -> Node:
    """Return a Loop with one carried number `s`; the body computes `go` and `t` from it."""
    model = parsed(
        f"""<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g
        (float x, int64 m, bool b) => (float z) <{CONSTANTS}> {{
            z = Neg(x)  outer = Abs(five)
            y = Loop({limit}, {condition}, {state})<body = g (int64 i, bool k, {kind} s)
                => (bool go, {kind} t) {{ {body} }}> }}"""
    )
    return next(node for node in model.main.nodes if node.op_type == "Loop")


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("t = Add(s, one)  go = Less(t, five)", 4),  # 2, 3, 4, 5
        ("t = Add(s, one)  go = LessOrEqual(t, five)", 5),
        ("t = Add(s, one)  go = Less(s, five)", 5),
        ("t = Mul(s, two)  go = Less(t, five)", 3),  # 2, 4, 8
        ("t = Identity(s)  go = Less(i, two)", 3),
        ("t = Add(s, i)  go = Less(t, five)", 4),  # 1, 2, 4, 7
        ("t = Sub(s, one)  e = Equal(t, five)  go = Not(e)", None),
        ("t = Max(s, five)  go = Less(t, five)", 1),
        ("t = Where(k, five, s)  go = Less(t, five)", 1),
        ("c = Cast<to = 1>(s)  d = Cast<to = 1>(five)  t = Add(s, two)  go = Less(c, d)", 3),
        ("c = Cast<to = 1>(s)  d = Cast<to = 11>(c)  t = Sub(s, one)  go = Cast<to = 9>(t)", 1),
        (
            "c = Cast<to = 1>(s)  d = Cast<to = 11>(c)  e = Cast<to = 11>(five)  t = Add(s, two)  "
            "go = Less(d, e)",
            3,
        ),
        ("c = Cast<to = 6>(s)  d = Cast<to = 6>(five)  t = Add(s, two)  go = Less(c, d)", 3),
        ("q = Constant<value_int = 7>()  t = Add(s, q)  go = Less(t, five)", 1),
        ("t = Add(s, m)  go = Less(i, five)", 6),  # what the condition does not read may be unknown
    ],
)
def test_the_part_that_decides_is_run(body: str, count: int | None) -> None:
    found = trip_count_of(loop(body), 20)
    assert found == (count if count is not None else "it runs more than 20 times")


@pytest.mark.parametrize(
    ("limit", "count"),
    [("two", 2), ("five", 4), ("one", 1), ("m", "the number of iterations is not a constant")],
)
def test_the_limit_of_the_loop_holds_too(limit: str, count: int | str) -> None:
    assert trip_count_of(loop("t = Add(s, one)  go = Less(t, five)", limit=limit), 20) == count


@pytest.mark.parametrize(
    ("condition", "count"), [("yes", 4), ("no", 0), ("b", "the condition is not a constant")]
)
def test_the_first_condition_holds_too(condition: str, count: int | str) -> None:
    found = trip_count_of(loop("t = Add(s, one)  go = Less(t, five)", condition=condition), 20)
    assert found == count


@pytest.mark.parametrize(
    ("most", "expected"),
    [(5, 4), (4, 4), (3, "it runs more than 3 times"), (1, "it runs more than 1 time"),
     (0, BODY_DECIDES), (-1, BODY_DECIDES)],
)  # fmt: skip
def test_larger_counts_are_not_computed(most: int, expected: int | str) -> None:
    assert trip_count_of(loop("t = Add(s, one)  go = Less(t, five)"), most) == expected


@pytest.mark.parametrize(
    "body",
    [
        "t = Add(s, one)  go = Less(t, m)",  # not a constant
        "t = Add(s, m)  go = Less(t, five)",
        "t = Add(s, one)  n = ReduceSum(pair)  q = Squeeze(n)  go = Less(t, q)",  # more elements
        "t = Div(s, two)  go = Less(t, five)",  # may end the process
        "c = Cast<to = 1>(s)  e = Exp(c)  t = Add(s, one)  go = Less(e, half)",  # rounded
        "c = Cast<to = 1>(s)  t = Cast<to = 7>(c)  go = Less(t, five)",  # a float as an integer
        "t = Add(s, one)  go = Less(t, five)  q = RandomNormal<shape = [1]>()",
        "t = vendor.Add(s, one)  go = Less(t, five)",
        "c = Cast<to = 1>(outer)  d = Cast<to = 1>(s)  t = Add(s, one)  go = Less(d, c)",
    ],
)
def test_a_part_that_is_not_exact_or_not_known_decides_nothing(body: str) -> None:
    expected = 4 if "RandomNormal" in body else BODY_DECIDES
    assert trip_count_of(loop(body), 20) == expected


def test_a_state_that_is_no_constant_of_one_element_decides_nothing() -> None:
    body = "t = Add(s, one)  go = Less(t, five)"
    assert trip_count_of(loop(body, "m"), 20) == BODY_DECIDES
    assert trip_count_of(loop(body, "pair", kind="int64[2]"), 20) == BODY_DECIDES


def test_integers_wrap_as_they_do_in_the_model() -> None:
    body = "t = Add(s, step)  go = Greater(t, step)"  # 253, 0
    assert trip_count_of(loop(body, "byte", kind="uint8"), 20) == 2


def test_floats_are_those_of_the_model() -> None:
    body = "t = Sub(s, half)  go = Greater(t, half)"
    assert trip_count_of(loop(body, "f", kind="float"), 20) == 1
    thirds = "t = Add(s, half)  c = Cast<to = 1>(five)  go = Less(t, c)"
    assert trip_count_of(loop(thirds, "f", kind="float"), 20) == 8


def _by(op: str) -> Node:
    return loop(f"t = {op}(s, one)  go = Less(t, five)")


@pytest.mark.parametrize(("op", "count"), [("Add", 4), ("Mul", "it runs more than 20 times")])
def test_counts_are_those_of_the_operator(op: str, count: int | str) -> None:
    assert trip_count_of(_by(op), 20) == count


def test_what_a_runtime_refuses_decides_nothing() -> None:
    """An Add of an integer and a float: no runtime takes it."""
    text = f"""(float x) => (float z) <{CONSTANTS}> {{
        z = Neg(x)
        y = Loop(, , one)<body = g (int64 i, bool k, int64 s) => (bool go, int64 t) {{
            t = Add(s, half)  go = Less(t, five) }}> }}"""
    proto = _unchecked(text)
    node = next(each for each in Model.from_proto(proto).main.nodes if each.op_type == "Loop")
    assert trip_count_of(node, 20) == BODY_DECIDES


def _unchecked(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}')


def test_numbers_of_the_body_and_around_it_are_read() -> None:
    proto = _unchecked(
        """(float x) => (float z) <int64 a = {1}> {
            z = Neg(x)
            y = Loop(, , a)<body = g (int64 i, bool k, int64 s) => (bool go, int64 t)
                <int64 b = {2}> { t = Add(s, b)  go = Less(t, c) }> }"""
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.array(6), "c"))
    node = next(each for each in Model.from_proto(proto).main.nodes if each.op_type == "Loop")
    assert trip_count_of(node, 20) == 3  # 3, 5, 7


def test_operators_that_compute_the_same_bits_everywhere() -> None:
    for call, expected in (
        ("Cast<to = 7>(u)", False), ("Cast<to = 1>(u)", True), ("Cast<to = 7>(i)", True),
        ("Cast<to = 7>(x)", False), ("Cast<to = 1>(i)", True), ("Cast<to = 9>(b)", True),
        ("Add(i, i)", True), ("Div(i, i)", False), ("vendor.Add(i, i)", False), ("Exp(x)", False),
    ):  # fmt: skip
        text = f"""<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]>
            g (float x, int64 i, bool b) => (float y) {{
                u = vendor.Any(x)  y = Neg(x)  c = {call} }}"""
        assert _is_exact(parsed(text).main.nodes[-1]) is expected, call


@pytest.mark.parametrize(
    ("counter", "condition", "count"),
    # onnxruntime gives a body the condition as a scalar.
    [("int64[1]", "bool", 4), ("int64[]", "bool[]", 4), ("int64[1]", "bool[1]", BODY_DECIDES)],
)
def test_a_body_may_declare_its_counter_as_a_list(
    counter: str, condition: str, count: int | str
) -> None:
    proto = _unchecked(
        f"""(float x) => (float z) <{CONSTANTS}, int64[1] goal = {{3}}> {{ z = Neg(x)
        y = Loop(, , one)<body = g ({counter} i, {condition} k, int64 s) => (bool[1] go, int64 t) {{
            t = Add(s, one)  e = Where(k, i, five)  go = Less(e, goal) }}> }}"""
    )
    assert trip_count_of(Model.from_proto(proto).main.nodes[-1], 20) == count


def test_a_cast_to_a_parameter_of_its_function_is_not_known() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (int64 x) => (float y) { y = f.F<to = 1>(x) }
        <domain: "f", opset_import: ["" : 21]> F <to> (v) => (u) { u = Cast<to : int = @to>(v) }"""
    (function,) = Model.from_proto(onnx.parser.parse_model(text)).functions
    assert not _is_exact(function.nodes[0])


def test_a_number_is_a_constant_of_one_element() -> None:
    proto = _unchecked(
        "(float x) => (float y) <float one = {1}, float[2] two = {1,2}> { y = Neg(x) }"
    )
    values = numpy_helper.from_array(np.array([5], np.float32), "sparse")
    indices = numpy_helper.from_array(np.array([0]))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [1]))
    found = Model.from_proto(proto).main.values
    assert [_is_number(found[name]) for name in ("one", "two", "x", "sparse")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert not _is_number(None)
