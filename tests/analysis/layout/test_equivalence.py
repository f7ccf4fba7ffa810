"""A tensor in all its orders, and the choices of the operators that read and make it."""

import pytest

from tests.small import made_by, named, parsed
from tiered import Model
from tiered.analysis.layout.axis_propagation import AxisPropagation, Labels
from tiered.analysis.layout.equivalence import (
    ChoiceTable,
    LayoutOperator,
    OperatorPort,
    OrderChoice,
    TensorClass,
    is_live,
)
from tiered.analysis.layout.layout_conversion import reach_of

TEXT = """(float[2,3,4] x) => (float[2,3,4] y, float[4,2,3] z, float[3,4,2] w) {
    t = Transpose<perm=[2,0,1]>(x)  b = Transpose<perm=[1,2,0]>(t)  u = Transpose<perm=[2,0,1]>(t)
    z = Relu(t)  y = Add(x, b)  w = Neg(u) }"""


def tensor(model: Model, name: str = "x") -> TensorClass:
    value = named(model, name)
    assert value.shape is not None
    found = TensorClass(value, value.shape)
    found.trace()
    return found


def test_transposes_of_a_value_are_its_views() -> None:
    model = parsed(TEXT)
    found = tensor(model)
    assert {value.name: view for value, view in found.views.items()} == {
        "x": (0, 1, 2), "t": (2, 0, 1), "b": (0, 1, 2), "u": (1, 2, 0),
    }  # fmt: skip
    assert found.identity == (0, 1, 2)
    assert found.orders == {(0, 1, 2): 0, (2, 0, 1): 0, (1, 2, 0): 0}
    uses = {value.name: [node.output.name for node, _ in own] for value, own in found.uses.items()}
    assert uses == {"x": ["y"], "t": ["z"], "b": ["y"], "u": ["w"]}
    assert sorted(node.output.name for node in found.users) == ["w", "y", "y", "z"]


def test_a_value_is_live_as_long_as_its_node_and_those_around_it() -> None:
    model = parsed(
        """(float[2] x, bool c) => (float[2] y) { a = Neg(x)
        b = If(c) <then_branch = t () => (float[2] p) { p = Abs(x) },
                   else_branch = e () => (float[2] q) { q = Exp(x) }>
        y = Relu(x) }"""
    )
    (branch,) = model.main.nodes_of("If")
    p, q = (body.outputs[0] for body in branch.bodies)
    values = [named(model, "a"), p, q, named(model, "c")]
    assert [is_live(value) for value in values] == [True] * 4
    model.main.prune([branch, made_by(model, "a")])
    model.main.remove_input(named(model, "c"))
    assert [is_live(value) for value in values] == [False] * 4


def test_the_producer_is_a_user_too() -> None:
    model = parsed(TEXT)
    assert next(tensor(model, "z").users) is made_by(model, "z")


def test_orders_that_a_search_found_stay() -> None:
    model = parsed(TEXT)
    found = tensor(model)
    found.orders[2, 1, 0] = 5
    found.trace()
    assert found.orders[2, 1, 0] == 5


def test_places_in_other_orders_are_those_of_views_in_these() -> None:
    model = parsed(TEXT)
    found = tensor(model)
    y, z, w = (made_by(model, name) for name in "yzw")
    assert set(found.places_in_other_orders((0, 1, 2))) == {
        (z, (2, 0, 1), 0, False), (w, (1, 2, 0), 0, False),
    }  # fmt: skip
    assert set(found.places_in_other_orders((2, 0, 1))) == {
        (y, (0, 1, 2), 0, False), (y, (0, 1, 2), 1, False), (w, (1, 2, 0), 0, False),
    }  # fmt: skip
    made = tensor(model, "z")
    assert made.places_in_other_orders((0, 1, 2)) == []
    assert made.places_in_other_orders((1, 0, 2)) == [(z, (0, 1, 2), 0, True)]


def test_a_transpose_of_another_rank_is_a_use() -> None:
    model = parsed(
        "(float[2,3] x) => (float[3,2] y, float[2,3] z)"
        " { y = Transpose<perm=[1,0]>(x)  z = Transpose<perm=[0,2,1]>(x) }"
    )
    found = tensor(model)
    assert [value.name for value in found.views] == ["x", "y"]
    assert [node.output.name for node, _ in found.uses[named(model, "x")]] == ["z"]


def test_a_value_is_live_while_its_model_has_it() -> None:
    model = parsed(TEXT.replace("z = Relu(t)", "k = Sin(t)  z = Relu(t)"))
    k = named(model, "k")
    assert is_live(named(model, "x"))
    assert is_live(k)
    model.main.remove_node(made_by(model, "k"))
    assert not is_live(k)


# --- choices --------------------------------------------------------------------------------------


def no_write(op: object) -> tuple[()]:
    raise AssertionError


def table(*ports: tuple[Labels, tuple[int, ...]], first: int | None = None) -> ChoiceTable:
    """Return the choices of an operator with one label for each axis of each port."""
    found = AxisPropagation(
        tuple(labels for labels, _ in ports), (), no_write,
        lambda order: first is None or order[0] == first,
    )  # fmt: skip
    return ChoiceTable(found, ports)


def test_the_present_order_is_choice_0() -> None:
    found = table(((0, 1, 2), (2, 0, 1)), ((1, 2), (0, 1)))
    assert found.choices == [OrderChoice((0, 1, 2), ((2, 0, 1), (0, 1)))]
    assert found.find(0, (2, 0, 1)) == 0
    assert found.find(1, (0, 1)) == 0


def test_an_order_of_one_port_decides_those_of_the_others() -> None:
    found = table(((0, 1, 2), (2, 0, 1)), ((1, 2), (0, 1)))
    # Axes (0, 1, 2) of the root of the first port are the labels (1, 2, 0).
    assert found.find(0, (0, 1, 2)) == 1
    assert found.choices[1] == OrderChoice((1, 2, 0), ((0, 1, 2), (0, 1)))
    assert found.find(1, (1, 0)) == 2
    assert found.choices[2] == OrderChoice((0, 2, 1), ((2, 1, 0), (1, 0)))
    assert found.find(0, (0, 1, 2)) == 1
    assert found.find(0, (2, 1, 0)) == 2
    assert len(found.choices) == 3


def test_an_order_that_the_operator_does_not_have_is_no_choice() -> None:
    found = table(((0, 1), (0, 1)), first=0)
    assert found.find(0, (1, 0)) is None
    assert found.find(0, (1, 0)) is None
    assert len(found.choices) == 1


def test_equal_orders_of_all_ports_are_one_choice() -> None:
    found = table(((0, 1), (0, 1)))
    assert found.choose((1, 0)) == 1
    assert found.choose((1, 0)) == 1
    assert found.choose((0, 1)) == 0
    assert found.orders_of(0) == ((0, 1), (1, 0))


def test_orders_of_a_port_grow_with_the_choices() -> None:
    found = table(((0, 1), (0, 1)))
    assert found.orders_of(0) == ((0, 1),)
    found.choose((1, 0))
    assert found.orders_of(0) == ((0, 1), (1, 0))


def test_ports_move_if_they_have_several_orders() -> None:
    found = table(((0, 1, 2), (0, 1, 2)), ((2,), (0,)), ((1, 2), (0, 1)))
    found.choose((1, 0, 2))
    assert found.moving_ports([0, 1]) == (0,)
    found.choose((2, 1, 0))
    assert found.moving_ports([0, 1, 2]) == (0, 2)
    assert found.moving_ports([0]) == ()


# --- operators ------------------------------------------------------------------------------------


def test_an_operator_has_the_tensors_at_its_ports() -> None:
    model = parsed(TEXT)
    reach = reach_of(model)
    add = reach.operators[made_by(model, "y")]
    x = reach.tensors[named(model, "x")]
    made = reach.tensor_of(named(model, "y"))
    assert made is not None
    assert add.ports == (
        OperatorPort(x, (0, 1, 2), 0, False), OperatorPort(x, (0, 1, 2), 1, False),
        OperatorPort(made, (0, 1, 2), 0, True),
    )  # fmt: skip
    assert add.places == {x: [0, 1], made: [2]}
    assert add.find(x, (0, 1, 2)) == 0
    number = add.find(x, (2, 0, 1))
    assert number
    assert add.choices[number].orders == ((2, 0, 1),) * 3
    other = tensor(model, "w")
    assert add.find(other, (0, 1, 2)) is None


def test_candidates_are_numbered_once() -> None:
    model = parsed(TEXT)
    (node,) = model.main.nodes_of("Neg")
    own = table(((0, 1), (0, 1)))
    operator = LayoutOperator(node, own, ())
    free = [operator.is_free]
    operator.add_candidate(own.choose((1, 0)))
    operator.add_candidate(1)
    operator.add_candidate(0)
    assert operator.candidates == [0, 1]
    assert [*free, operator.is_free] == [False, True]
    assert operator.moving_ports == (0,)


def test_a_preferred_order_is_wanted_and_a_candidate() -> None:
    (node,) = parsed(TEXT).main.nodes_of("Neg")
    operator = LayoutOperator(node, table(((0, 1), (0, 1))), ())
    wishes = [operator.wanted]
    operator.prefer((1, 0))
    assert [*wishes, operator.wanted] == [None, 1]
    assert operator.candidates == [0, 1]
    assert operator.propagation is operator.table.propagation


@pytest.mark.parametrize("count", [7, 8, 9])
def test_a_tensor_of_many_ports_is_found_too(count: int) -> None:
    operands = ", ".join(["b"] * (count - 1))
    model = parsed(
        f"""(float[2,3] x, float[2,3] b) => (float[3,2] y) {{
        s = Sum(x, {operands})  y = Transpose<perm=[1,0]>(s) }}"""
    )
    reach = reach_of(model)
    operator = reach.operators[made_by(model, "s")]
    assert len(operator.ports) == count + 1
    for name in ("x", "b", "s"):
        found = reach.tensor_of(named(model, name))
        assert found is not None
        assert operator.find(found, (0, 1)) == 0
        assert operator.find(found, (1, 0)) == 1
    assert operator.find(tensor(model, "x"), (0, 1)) is None
