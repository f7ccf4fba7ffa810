"""Which local functions call each other, which call themselves, and how large all of them are."""

import pytest

from tests.small import made_by, parsed
from tiered.graph import Model
from tiered.graph.queries.call_graph import (
    MANY,
    call_graph,
    check_callee,
    expanded_size,
    recursive_functions,
)
from tiered.support.errors import ModelError


def calling(main: str, **functions: str) -> Model:
    """Return a model with local functions of one operand, as texts of nodes from a to b."""
    texts = [
        f'<domain: "local", opset_import: ["" : 21, "local" : 1]> {name} (a) => (b) {{ {nodes} }}'
        for name, nodes in functions.items()
    ]
    head = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'
    return parsed(f"{head} g (float[2] x) => (float[2] y) {{ {main} }} {' '.join(texts)}")


NESTED = {"F": "m = local.G(a)  b = local.G(m)", "G": "m = Neg(a)  b = Abs(m)", "H": "b = Neg(a)"}


def ids(*names: str) -> set[tuple[str, str, str]]:
    return {("local", name, "") for name in names}


def test_edges_lead_from_callers_to_callees() -> None:
    model = calling("y = local.F(x)", **NESTED)
    calls = call_graph(model)
    assert set(calls) == {model.main, *ids("F", "G", "H")}
    (f,), (g,) = ids("F"), ids("G")
    assert set(calls.edges) == {(model.main, f), (f, g)}


def test_calls_in_bodies_count() -> None:
    model = calling(
        """p = Cast<to = 9>(x)  z = Constant<value_int = 0>()  q = Gather(p, z)
        y = If(q) <then_branch = t () => (float[2] u) { u = local.G(x) },
                   else_branch = e () => (float[2] v) { v = Neg(x) }>""",
        **NESTED,
    )
    assert (model.main, *ids("G")) in call_graph(model).edges


def test_calls_of_the_training_graphs_are_those_of_the_main_graph() -> None:
    proto = calling("y = local.F(x)", **NESTED).to_proto()
    nodes = proto.training_info.add().algorithm.node
    nodes.add(op_type="H", domain="local", input=["x"], output=["h"])
    nodes.add(op_type="Neg", input=["x"], output=["n"])
    model = Model.from_proto(proto)
    assert set(call_graph(model).successors(model.main)) == ids("F", "H")


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        (NESTED, set()),
        ({"F": "b = local.F(a)"}, {"F"}),
        ({"F": "b = local.G(a)", "G": "b = local.F(a)", "H": "b = local.F(a)"}, {"F", "G"}),
    ],
)
def test_functions_that_call_themselves_on_any_way(
    functions: dict[str, str], expected: set[str]
) -> None:
    model = calling("y = Neg(x)", **functions)
    assert recursive_functions(model) == ids(*expected)


def test_a_call_that_would_close_a_circle_is_refused() -> None:
    model = calling("y = local.F(x)", **NESTED)
    f, g, h = ids("F").pop(), ids("G").pop(), ids("H").pop()
    function = model.function(*g)
    assert function is not None
    with pytest.raises(ModelError, match=r"a call of 'local\.F' would make the function"):
        check_callee(function, f)
    with pytest.raises(ModelError, match="call itself"):
        check_callee(function, g)
    check_callee(function, h)
    check_callee(function, ("local", "Other", ""))
    check_callee(model.main, f)


def test_the_main_graph_may_not_come_to_reach_a_function_that_calls_itself() -> None:
    """A file may have such functions where nothing calls them, and others that call those."""
    loops = {"F": "b = local.G(a)", "G": "b = local.F(a)", "Over": "b = local.F(a)"}
    model = calling("y = local.Used(x)", **loops, Used="b = Neg(a)", Unused="b = Abs(a)")
    used, unused = model.function("local", "Used"), model.function("local", "Unused")
    assert used is not None
    assert unused is not None
    for name in loops:
        message = rf"through 'local\.{name}', the graph would reach a function that calls itself"
        for graph in (model.main, used):
            with pytest.raises(ModelError, match=message):
                check_callee(graph, ("local", name, ""))
        check_callee(unused, ("local", name, ""))
    check_callee(model.main, unused.id)
    with pytest.raises(ModelError, match="the graph would reach a function"):
        model.main.add_node("F", [model.main.inputs[0]], domain="local")


def test_the_size_is_that_after_inlining() -> None:
    model = calling("m = local.F(x)  y = local.G(m)", **NESTED)
    assert expanded_size(model, ()) == 4 + 2
    assert expanded_size(model, ids("G")) == 1 + 1 + 1 + 2
    assert expanded_size(model, ids("F", "G")) == 2 + 2 + 2


def test_sizes_that_double_stop_at_a_number() -> None:
    deep = {f"F{at}": f"m = local.F{at + 1}(a)  b = local.F{at + 1}(m)" for at in range(80)}
    model = calling("y = local.F0(x)", **deep, F80="b = Neg(a)")
    assert expanded_size(model, ()) == MANY
    assert made_by(model, "y").op_type == "F0"
