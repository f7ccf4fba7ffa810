"""Which operators a permutation can be moved to, and the tensors that it meets."""

import pytest

from tests.recorded import assert_values
from tests.small import made_by, named, parsed
from tiered import Model, Skip
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.reach import MAX_ORDERS, UNLIMITED, Reach, open_graphs, transposes
from tiered.analysis.layout.rules.product_layouts import MAX_DISTANCE

TO, BACK = "Transpose<perm=[2,0,1]>", "Transpose<perm=[1,2,0]>"


def reached(text: str, opset: int = 21, **wanted: str) -> dict[str, int]:
    """Return the number of candidates of each operator that is free, by its output."""
    reach = reach_of(parsed(text, opset=opset), wanted)
    return {each.node.output.name: len(each.candidates) for each in reach.free}


def test_a_permutation_is_moved_in_both_directions_until_an_operator_fixes_its_axes() -> None:
    text = f"""(float[2,3,4] x) => (float[4,2,3] y) {{
        a = acme.Any(x)  b = Abs(x)  c = Neg(b)  t = {TO}(c)  d = Relu(t)  e = Exp(d)
        f = Cast<to=1>(e)  y = acme.Other(f) }}"""
    assert reached(text) == {"b": 2, "c": 2, "d": 2, "e": 2, "f": 2}


def test_without_a_transpose_no_operator_is_reached() -> None:
    assert reached("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }") == {}


def test_operators_that_are_asked_for_are_starts_too() -> None:
    text = """(float[1,2,4,4] x) => (float[1,2,2,2] y) {
        r = Relu(x)  y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r) }"""
    assert reached(text) == {}
    assert reached(text, MaxPool="NHWC") == {"r": 2, "y": 2}
    assert reached(text, MaxPool="NCHW") == {}


def visit(text: str, opset: int = 21, **wanted: str) -> None:
    """Print the tensors that a search visits, with their views and orders, and the operators.

    An order is followed by how many operators the search may continue from it.
    """
    reach = reach_of(parsed(text, opset=opset), wanted)
    for tensor in dict.fromkeys(reach.tensors.values()):
        views = " ".join(f"{value.name}{_axes(perm)}" for value, perm in tensor.views.items())
        orders = " ".join(
            f"{_axes(order)}{'*' if steps == UNLIMITED else steps}"
            for order, steps in tensor.orders.items()
        )
        print(f"{views} in {orders}")
    for operator in reach.operators.values():
        choices = " ".join(_axes(operator.choices[number].labels) for number in operator.candidates)
        wish = "" if operator.wanted is None else f" wants {operator.wanted}"
        ports = " ".join(
            f"{'out' if each.is_output else 'in'}{each.slot}" for each in operator.ports
        )
        print(f"{operator.node.op_type} {operator.node.label} of {ports} in {choices}{wish}")


def _axes(order: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, order))}]"


def test_what_a_search_visits() -> None:
    assert_values(__file__, {"visit": visit, "TO": TO, "BACK": BACK})


# --- tensors --------------------------------------------------------------------------------------


def test_a_tensor_is_found_from_each_of_its_views() -> None:
    model = parsed(f"(float[2,3,4] x) => (float[2,3,4] y) {{ t = {TO}(x)  y = {BACK}(t) }}")
    reach = Reach(model)
    found = reach.tensor_of(named(model, "y"))
    assert found is not None
    assert found.root is named(model, "x")
    assert reach.tensor_of(named(model, "t")) is found
    assert reach.tensor_of(named(model, "x")) is found


def test_constants_and_values_of_unknown_rank_are_no_tensors() -> None:
    model = parsed(
        f"""(float[2,3,4] x) => (float[A,B,C] y) <float[2,3,4] k = {{{",".join("1" * 24)}}}> {{
        c = {TO}(k)  u = acme.Any(x)  t = {TO}(u)  y = Add(t, c) }}"""
    )
    reach = Reach(model)
    assert reach.tensor_of(named(model, "k")) is None
    assert reach.tensor_of(named(model, "c")) is None
    assert reach.tensor_of(named(model, "u")) is None


def test_a_transpose_of_unknown_order_is_an_operator() -> None:
    model = parsed("(float x) => (float y) { a = acme.Any(x)  t = Transpose(a)  y = acme.Any(t) }")
    assert list(transposes(model.main)) == []
    assert Reach(model).tensor_of(named(model, "t")) is None


# --- operators ------------------------------------------------------------------------------------


def test_what_fixes_its_axes_is_no_operator() -> None:
    model = parsed("(float[2,3] x) => (float[2,3] y) { a = acme.Any(x)  y = Relu(x) }")
    reach = Reach(model)
    assert reach.operator(made_by(model, "a")) is None
    assert isinstance(reach.propagation(made_by(model, "a")), Skip)
    operator = reach.operator(made_by(model, "y"))
    assert operator is not None
    assert reach.operator(made_by(model, "y")) is operator
    assert operator.candidates == [0]


def test_a_result_of_unknown_rank_ends() -> None:
    model = parsed("(float[2,3] x, int64[N] s) => (float y) { e = Expand(x, s)  y = acme.Any(e) }")
    reach = Reach(model)
    assert isinstance(reach.propagation(made_by(model, "e")), Skip)


def test_equal_operators_share_a_propagation_and_a_table() -> None:
    model = parsed(
        f"""(float[2,3,4] x, float[2,3,4] v) => (float[4,2,3] y, float[4,2,3] z) {{
        t = {TO}(x)  u = {TO}(v)  y = Relu(t)  z = Relu(u) }}"""
    )
    reach = reach_of(model)
    one, other = (reach.operators[made_by(model, name)] for name in "yz")
    assert one.table is other.table
    assert one.propagation is other.propagation


def test_operands_that_are_constant_have_no_port() -> None:
    model = parsed(
        f"""(float[2,3,4] x) => (float[4,2,3] y) <float[3] k = {{1,2,3}}> {{
        t = {TO}(x)  y = Add(t, k) }}"""
    )
    operator = reach_of(model).operators[made_by(model, "y")]
    assert [(port.slot, port.is_output) for port in operator.ports] == [(0, False), (0, True)]


def test_a_preferred_layout_is_that_of_images() -> None:
    text = """(float[1,2,4,4] x) => (float[1,2,2,2] y) <float[2,2,1,1] w = {1,2,3,4}> {
        c = Conv(x, w)  y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c) }"""
    model = parsed(text)
    reach = Reach(model, {"Conv": "NHWC"})
    conv, pool = (reach.operator(made_by(model, name)) for name in "cy")
    assert conv is not None
    assert pool is not None
    assert conv.wanted == 1
    assert conv.choices[1].orders[0] == (0, 2, 3, 1)
    assert pool.wanted is None
    starts = list(reach.wanted_starts(conv.node))
    assert {order for _, order in starts} == {(0, 2, 3, 1)}
    assert not list(reach.wanted_starts(pool.node))
    other = parsed("(float[1,2] x) => (float y) { y = acme.Any(x) }")
    assert not list(Reach(other, {"Any": "NHWC"}).wanted_starts(made_by(other, "y")))


def test_an_operator_that_may_have_any_order_has_no_preferred_one() -> None:
    model = parsed(
        """(float[1,2,4,4] x) => (float[1,2,8,8] y) <float[4] s = {1,1,2,2}>
        { y = Resize<mode="nearest">(x, , s) }"""
    )
    operator = Reach(model, {"Resize": "NHWC"}).operator(made_by(model, "y"))
    assert operator is not None
    assert operator.wanted is None


# --- the search -----------------------------------------------------------------------------------


def test_orders_of_a_tensor_are_bounded() -> None:
    """Eight orders are there; further ones come from six of them at most."""
    orders = [[0, 1, 3, 2], [0, 2, 1, 3], [0, 2, 3, 1], [0, 3, 1, 2], [0, 3, 2, 1], [1, 0, 2, 3],
              [1, 0, 3, 2]]  # fmt: skip
    lines = " ".join(
        f"t{at} = Transpose<perm={order}>(r)  y{at} = acme.Any(t{at})"
        for at, order in enumerate(orders)
    )
    outputs = ", ".join(f"float y{at}" for at in range(len(orders)))
    model = parsed(f"(float[2,3,4,5] x) => ({outputs}) {{ r = Relu(x)  {lines} }}")
    reach = reach_of(model)
    assert len(reach.free) == 1
    tensor = reach.tensor_of(named(model, "x"))
    assert tensor is not None
    assert len(tensor.orders) == MAX_ORDERS == 6
    views = reach.tensor_of(named(model, "r"))
    assert views is not None
    assert len(views.orders) == len(orders) + 1


def test_a_search_ends_some_operators_behind_one_that_it_may_not_pass_far() -> None:
    model = parsed(f"(float[2,3,4] x) => (float[4,2,3] y) {{ t = {TO}(x)  y = Relu(t) }}")
    reach = reach_of(model)
    tensor = reach.tensor_of(named(model, "x"))
    assert tensor is not None
    assert set(tensor.orders) == {(0, 1, 2), (2, 0, 1)}
    assert all(steps > 0 for steps in tensor.orders.values())


def test_an_order_goes_through_a_product_and_one_operator_more() -> None:
    text = f"""(float[3,4] x) => (float y) <float[3,5] w = {{{",".join("1" * 15)}}}> {{
        t = Transpose<perm=[1,0]>(x)  m = MatMul(t, w)  a = Relu(m)  b = Abs(a)  c = Neg(b)
        y = acme.Any(c) }}"""
    assert MAX_DISTANCE == 2
    assert reached(text) == {"m": 2, "a": 2}


def test_an_operator_is_reached_from_its_result_too() -> None:
    text = """(float[2,3,4,5] x) => (float y) <int64[1] a = {0}> {
        r = ReduceMax<keepdims=0>(x, a)  t = Transpose<perm=[2,0,1]>(r)  y = acme.Any(t) }"""
    assert reached(text) == {"r": 2}


def test_a_full_tensor_does_not_end_the_search_for_others() -> None:
    orders = [[0, 1, 3, 2], [0, 2, 1, 3], [0, 2, 3, 1], [0, 3, 1, 2], [0, 3, 2, 1], [1, 0, 2, 3],
              [1, 0, 3, 2]]  # fmt: skip
    lines = " ".join(
        f"t{at} = Transpose<perm={order}>(r)  y{at} = acme.Any(t{at})"
        for at, order in enumerate(orders)
    )
    outputs = ", ".join(f"float y{at}" for at in range(len(orders)))
    text = f"""(float[2,3,4,5] x, float[2,3] z) => ({outputs}, float w) {{
        r = Relu(x)  {lines}
        a = Abs(z)  b = Neg(a)  c = Exp(b)  t = Transpose(c)  w = acme.Any(t) }}"""
    assert {"a", "b", "c"} <= reached(text).keys()


def test_left_out_transposes_are_no_starts() -> None:
    model = parsed(f"(float[2,3,4] x) => (float[4,2,3] y) {{ t = {TO}(x)  y = Relu(t) }}")
    assert reach_of(model, without={named(model, "t")}).free == []
    assert len(reach_of(model).free) == 1


# --- graphs ---------------------------------------------------------------------------------------


def test_bodies_of_channels_last_functions_are_left_out() -> None:
    model = Model.from_proto(parsed(
        """<ir_version: 10, opset_import: ["" : 21, "tiered.nhwc" : 1, "own" : 1]>
        g (float[1,4,4,2] x) => (float[1,4,4,2] y) { a = tiered.nhwc.F(x)  y = own.G(a) }
        <domain: "tiered.nhwc", opset_import: ["" : 21]> F (v) => (w) { w = Relu(v) }
        <domain: "own", opset_import: ["" : 21]> G (v) => (w) { w = Relu(v) }"""
    ).to_proto())  # fmt: skip
    assert [graph.name for graph in open_graphs(model)] == ["g", "G"]


@pytest.mark.parametrize(("line", "count"), [(TO, 1), ("Transpose", 1), ("Relu", 0)])
def test_transposes_of_a_graph_have_a_known_order(line: str, count: int) -> None:
    model = parsed(f"(float[2,3,4] x) => (float[A,B,C] y) {{ y = {line}(x) }}")
    assert len(list(transposes(model.main))) == count
