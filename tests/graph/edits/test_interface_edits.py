"""Inputs and outputs of a graph and their declarations, and what they refuse."""

from collections.abc import Callable, Iterator

import onnx
import pytest

from tests.graph.editor import fresh, serialized, wound_back
from tests.small import model as small, named, parsed
from tiered import ModelError
from tiered.graph import Graph, Model, TensorType
from tiered.graph.core.edit import Edit
from tiered.graph.core.journal import dirty_nodes
from tiered.graph.queries.view_invariants import violations
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y, float[2] z, float[2] y) { y = Relu(x) z = Exp(x) u = Neg(x) }"


def main() -> Graph:
    return Model.from_proto(parse(TEXT)).main


def test_every_place_of_the_value_is_exchanged_and_the_undo_brings_it_back() -> None:
    graph = main()
    y, z, u = (graph.values[name] for name in "yzu")
    mark, declared = graph.model.mark(), graph.output_infos
    graph.exchange_output(y, u)
    assert graph.outputs == (u, z, u)
    assert graph.output_infos == declared
    assert not y.is_graph_output
    assert u.output_of == (graph, graph)
    assert y.declared is None
    assert u.declared is declared[0]
    graph.exchange_output(u, z)
    assert graph.outputs == (z, z, z)
    assert z.declared is declared[0]
    graph.model.undo_to(mark)
    assert graph.outputs == (y, z, y)
    assert [y.declared, z.declared, u.declared] == [*declared[:2], None]


def test_only_the_producers_of_both_values_are_touched() -> None:
    graph = main()
    mark = graph.model.mark()
    graph.exchange_output(graph.values["y"], graph.values["u"])
    edits = graph.model.journal.since(mark)
    assert [entry[0] for entry in edits] == [Edit.EXCHANGE_GRAPH_OUTPUT]
    assert {node.op_type for node in dirty_nodes(edits)} == {"Relu", "Neg"}


@pytest.mark.parametrize("way", ["remove_output", "replace_outputs"])
def test_a_type_that_follows_from_no_operator_is_kept(way: str) -> None:
    model = parsed("""(float[2] x) => (
        float[2] y, float[2] z, float[2] u, float[2] x, float[2] v, float[2] v) {
        y = own.F(x)  z = Neg(x)  u = Abs(x)  a = own.F(y)  v = Relu(a) }""")
    before = serialized(model)
    mark, graph = model.mark(), model.main
    if way == "remove_output":
        for name in "yzxvv":
            graph.remove_output(named(model, name))
    else:
        graph.replace_outputs([named(model, "u")])
    proto = model.to_proto().graph
    assert [info.name for info in proto.output] == ["u"]
    assert [info.name for info in proto.value_info] == ["y", "v"]
    model.forget_types()
    assert [str(named(model, name).type) for name in "yv"] == ["float[2]"] * 2
    model.undo_to(mark)
    assert serialized(model) == before


def test_what_is_no_output_cannot_be_exchanged() -> None:
    graph, other = main(), main()
    with pytest.raises(ModelError, match="'u' is not an output"):
        graph.exchange_output(graph.values["u"], graph.values["y"])
    with pytest.raises(ModelError, match="cannot be an output"):
        graph.exchange_output(graph.values["y"], other.values["u"])


def test_an_input_of_another_dtype_is_no_output_in_its_place() -> None:
    text = "(float[2] x, int64 n) => (float[2] y) { y = Relu(x) }"
    graph = Model.from_proto(parse(text)).main
    declared = graph.outputs[0].declared
    assert declared is not None
    mark = graph.model.mark()
    both = r"declares 'n' as the input int64\[\] and as the output float\[2\]"
    with pytest.raises(ModelError, match=both):
        graph.exchange_output(graph.values["y"], graph.values["n"])
    with pytest.raises(ModelError, match="declares 'n' as the input"):
        graph.set_graph_outputs([graph.values["n"]], [declared])
    assert graph.model.mark() == mark
    graph.exchange_output(graph.values["y"], graph.values["x"])
    assert graph.outputs == (graph.values["x"],)


def test_a_constant_that_a_body_returns_is_declared_by_its_contents() -> None:
    text = """(bool c) => (float[2] y) <float[2] k = {1, 2}> {
        y = If (c) <then_branch = a () => (float[2] t) { t = Identity(k) },
                    else_branch = b () => (float[2] e) { e = Neg(k) }> }"""
    model = Model.from_proto(parse(text))
    k = model.main.values["k"]
    model.main.set_type(k, None)
    body = model.main.nodes[0].bodies[0]
    body.add_output(k)
    made = model.to_proto().graph.node[0].attribute[0].g.output[1]
    assert made.name == "k"
    assert [dim.dim_value for dim in made.type.tensor_type.shape.dim] == [2]


CHAIN = """g (float[2,3] x) => (float[2,3] y, float[2,3] z) <float[3] w = {1, 2, 3}>
{ a = Relu(x)  b = Add(a, w)  c = Clip(b, , )  y = Abs(b)  z = Neg(c) }"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    yield from wound_back(small(CHAIN))


def test_inputs_and_outputs_come_go_and_change_places(graph: Graph) -> None:
    x = graph.inputs[0]
    late = graph.add_input("late", TensorType(1, ("N", None)), index=0)
    graph.order_inputs([x, late])
    graph.remove_input(late)
    graph.add_output(graph.values["a"], index=0)
    graph.order_outputs(graph.outputs[::-1])
    graph.remove_output(graph.values["y"])
    assert [value.name for value in graph.inputs] == ["x"]
    assert [value.name for value in graph.outputs] == ["z", "a"]
    model = graph.model
    assert isinstance(model, Model)
    proto = model.to_proto()
    assert [dim.dim_value for dim in proto.graph.output[1].type.tensor_type.shape.dim] == [2, 3]


def test_outputs_are_replaced_in_one_edit(graph: Graph) -> None:
    declared = dict(zip(graph.outputs, graph.output_infos, strict=True))
    kept, length = graph.values["z"], len(graph.model.journal)
    graph.replace_outputs([graph.values["a"], kept])
    assert [value.name for value in graph.outputs] == ["a", "z"]
    assert graph.output_infos[1] is declared[kept]
    assert len(graph.model.journal) == length + 1


def test_an_initializer_becomes_a_default_and_a_constant_again(graph: Graph) -> None:
    weight = graph.values["w"]
    graph.mark_input(weight)
    assert weight.is_overridable
    assert weight.const is None
    graph.remove_input(weight)
    assert weight.const is not None


def test_a_function_has_inputs_and_outputs_without_declarations() -> None:
    model = fresh()
    function = model.functions[0]
    first = serialized(model)
    value = function.add_input("second")
    function.order_inputs([value, function.inputs[0]])
    function.add_output(value)
    assert list(model.to_proto().functions[0].input) == ["second", "v"]
    model.check_view()
    model.undo_to(0)
    assert serialized(model) == first


Refused = Callable[[Graph], object]

REFUSED: dict[str, tuple[Refused, str]] = {
    "an input that is read": (
        lambda g: g.set_graph_inputs([], []), "graph input 'x' cannot be removed: it is used"
    ),
    "a computed input": (
        lambda g: g.set_graph_inputs([*g.inputs, g.values["a"]], [*g.input_infos] * 2),
        "cannot be an input of graph 'g'",
    ),
    "an input twice": (
        lambda g: g.set_graph_inputs([*g.inputs] * 2, [*g.input_infos] * 2),
        "graph 'g' cannot have one input twice",
    ),
    "an input without a declaration": (
        lambda g: g.set_graph_inputs(g.inputs, []),
        "graph 'g' gets 1 input with 0 declarations; expected 1",
    ),
    "an output without a declaration": (
        lambda g: g.set_graph_outputs(g.outputs, g.output_infos[:1]),
        "graph 'g' gets 2 outputs with 1 declaration; expected 2",
    ),
    "a taken name": (lambda g: g.add_input("a", TensorType(1, ())), "already has a value 'a'"),
    "an input of no type": (lambda g: g.add_input("n"), "'n' needs a type to be an input or"),
    "no input": (lambda g: g.remove_inputs([g.values["a"]]), "'a' is not an input of graph 'g'"),
    "no output": (lambda g: g.remove_output(g.values["a"]), "'a' is not an output of graph 'g'"),
    "an order of others": (
        lambda g: g.order_inputs([g.values["a"]]),
        r"an order needs the same values; expected some order of \['x'\]",
    ),
    "an order with one twice": (
        lambda g: g.order_outputs([g.outputs[0]] * 2),
        r"expected some order of \['y', 'z'\]",
    ),
    "another graph's value": (
        lambda g: g.set_graph_outputs([small(CHAIN).main.values["y"]], g.output_infos[:1]),
        "cannot be an output of graph 'g'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_interface_that_is_none_is_refused(graph: Graph, name: str) -> None:
    edit, because = REFUSED[name]
    with pytest.raises(ModelError, match=because):
        edit(graph)
    assert not graph.model.changed_since(0)


@pytest.mark.parametrize(("index", "expected"), [(None, "xn"), (0, "nx"), (1, "xn")])
def test_an_input_is_added_last_or_before_another(
    graph: Graph, index: int | None, expected: str
) -> None:
    graph.add_input("n", TensorType(7, ("N", 2)), index=index)
    assert "".join(value.name for value in graph.inputs) == expected
    (info,) = [info for info in graph.input_infos if info.name == "n"]
    assert [(dim.dim_param, dim.dim_value) for dim in info.type.tensor_type.shape.dim] == [
        ("N", 0), ("", 2)
    ]  # fmt: skip


def test_what_is_an_output_or_input_already_stays_one(graph: Graph) -> None:
    length = len(graph.model.journal)
    graph.add_output(graph.values["y"])
    graph.mark_input(graph.values["x"])
    assert len(graph.model.journal) == length


def test_invented_names_of_dims_are_declared_as_unknown() -> None:
    model = parsed("(float[?,3] x) => (float[?,3] y) { a = Relu(x)  y = Neg(a) }")
    a, x = named(model, "a"), named(model, "x")
    shapes = [value.shape for value in (x, a)]
    assert all(isinstance(shape[0], str) for shape in shapes if shape is not None)
    model.main.add_output(a)
    dim = model.main.output_infos[1].type.tensor_type.shape.dim[0]
    assert not dim.HasField("dim_param")


def test_two_unknown_dims_of_inputs_have_two_names() -> None:
    model = parsed("(float[?] x, float[?] z) => (float[?] y) { y = Relu(x) }")
    x, z = named(model, "x").shape, named(model, "z").shape
    assert x is not None
    assert x != z
    assert model.dims.is_given(x[0])


def test_dims_of_what_a_loop_carries_may_differ_in_each_iteration() -> None:
    model = parsed(
        """(int64 n, bool c, float[N,3] v) => (float[N,3] y) { y = Loop(n, c, v) <
        body = l (int64 i, bool g, float[N,3] p) => (bool g2, float[N,3] q) {
            g2 = Identity(g)  q = Relu(p) }> }"""
    )
    body = model.main.nodes[0].bodies[0]
    carried = body.inputs[2]
    body.set_graph_inputs(body.inputs, [*body.input_infos[:2], onnx.ValueInfoProto(
        name="p", type=onnx.helper.make_tensor_type_proto(1, ["N", 3]))])  # fmt: skip
    assert carried.shape == (None, 3)


def test_what_a_loop_carries_may_have_no_rank() -> None:
    model = parsed(
        """(int64 n, bool c, float[] v) => (float[] y) { y = Loop(n, c, v) <
        body = l (int64 i, bool g, float[] p) => (bool g2, float[] q) {
            g2 = Identity(g)  q = Relu(p) }> }"""
    )
    body = model.main.nodes[0].bodies[0]
    body.set_graph_inputs(
        body.inputs,
        [*body.input_infos[:2], onnx.helper.make_tensor_value_info("p", 1, None)],
    )
    assert body.inputs[2].dtype == 1
    assert body.inputs[2].shape is None


def test_the_numbers_of_a_default_are_known_only_while_it_is_no_input() -> None:
    model = parsed("(float[6] x) => (float[N,M] y) <int64[2] s = {2,3}> { y = Reshape(x, s) }")
    s, y = named(model, "s"), named(model, "y")

    def known() -> tuple[bool, bool]:
        return s.elements is not None, y.shape == (2, 3)

    assert known() == (True, True)
    model.main.mark_input(s)
    assert known() == (False, False)
    assert y.rank == 2
    model.main.remove_input(s)
    assert known()[0]
    model.undo_to(0)
    assert known() == (True, True)


def test_a_function_may_return_an_input_in_the_place_of_a_result() -> None:
    function = fresh().functions[0]
    (value,), before = function.inputs, function.outputs
    function.exchange_output(before[0], value)
    assert function.outputs == (value, *before[1:])
    function.model.undo_to(0)
    assert function.outputs == before


def test_an_input_has_the_type_of_its_new_declaration(graph: Graph) -> None:
    info = onnx.helper.make_tensor_value_info("x", 1, [2, "K"])
    graph.set_graph_inputs(graph.inputs, [info])
    assert graph.inputs[0].shape == (2, "K")


def test_a_default_is_a_constant_of_its_contents_once_it_is_no_input() -> None:
    model = parsed("(float[N] w) => (float[N] y) <float[2] w = {1,2}> { y = Relu(w) }")
    w = named(model, "w")
    shapes = [w.shape]
    model.main.remove_input(w)
    shapes.append(w.shape)
    model.undo_to(0)
    assert [*shapes, w.shape] == [("N",), (2,), ("N",)]


def test_several_inputs_come_in_one_edit() -> None:
    model = parsed("(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[1] b = {3}> { "
                   "s = Add(x, a) y = Add(s, b) }")  # fmt: skip
    a, b = named(model, "a"), named(model, "b")
    model.main.mark_inputs([b, a, named(model, "x"), b])
    assert [value.name for value in model.main.inputs] == ["x", "b", "a"]
    assert [info.name for info in model.main.input_infos] == ["x", "b", "a"]
    assert (a.const, b.const) == (None, None)
    model.main.mark_inputs([a, b])
    assert len(model.journal) == 1


def test_several_inputs_go_in_one_edit() -> None:
    model = parsed("(float[2] a, float[2] x, float[2] b) => (float[2] y) { y = Relu(x) }")
    model.main.remove_inputs([named(model, "a"), named(model, "b")])
    assert [value.name for value in model.main.inputs] == ["x"]
    assert [info.name for info in model.main.input_infos] == ["x"]
    assert len(model.journal) == 1


def test_a_value_that_is_returned_twice_keeps_its_declarations_in_each_order() -> None:
    graph = main()
    first, second, third = graph.output_infos
    y, z = graph.values["y"], graph.values["z"]
    graph.order_outputs([y, y, z])
    assert list(graph.output_infos) == [first, third, second]
    graph.replace_outputs([z, y])
    assert list(graph.output_infos) == [second, first]


def test_a_declaration_of_no_value_keeps_its_name_for_itself(graph: Graph) -> None:
    info = onnx.helper.make_tensor_value_info("ghost", 1, [2])
    graph.set_declarations([(None, info)])
    assert "ghost" in graph.model.names
    graph.set_declarations([])
    assert "ghost" not in graph.model.names


def test_declarations_after_the_first_ones_are_exchanged(graph: Graph) -> None:
    a, b = graph.values["a"], graph.values["b"]
    one, two, three = (onnx.ValueInfoProto(name=name) for name in "aba")
    graph.set_declarations([(a, one), (b, two)])
    graph.set_declarations([(b, three)], keep=1)
    assert [info for _, info in graph.declarations] == [one, three]
    declared = [a.declared, b.declared]
    graph.set_declarations([])
    declared.append(a.declared)
    assert [*map(id, declared)] == [id(one), id(three), id(None)]
    assert graph.values["y"].declared is graph.output_infos[0]


def test_an_output_without_a_value_info_is_declared_by_itself(graph: Graph) -> None:
    y, a = graph.values["y"], graph.values["a"]
    before = y.declared, a.declared
    info = graph.output_infos[0]
    graph.set_graph_outputs([a], [info])
    after = y.declared, a.declared
    assert before == (info, None)
    assert after == (None, info)


BODIES = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
g (float[2] x, int64 n, seq(float[2]) q, float[N] w) => (float[2] y, float[2] z) <float[2] w = {1,2}, float[K] y, float[M] a> {
    a = Neg(x)  c = Cast<to=7>(x)
    y = own.Search(x) <body = b (float[D] s, float[?] t) => (float[D] r) { r = Neg(s) }>
    z, p = Loop(n, , x, q) <body = l (int64 i, bool k, float[D] u, seq(float[D]) v)
        => (bool k2, float[D] u2, seq(float[D]) v2) {
            k2 = Identity(k)  u2 = Neg(u)  v2 = Identity(v) }>
    e, , f = own.Three(w) }
<domain: "own", opset_import: ["": 21]> h (m, o) => (d) { d = Neg(m) }"""


def with_bodies() -> tuple[Graph, Graph, Graph, Graph]:
    """Return the main graph, the body of an unknown operator, that of a Loop, and a function."""
    model = Model.from_proto(parse(BODIES))
    search, loop = (body for node in model.main.nodes for body in node.bodies)
    return model.main, search, loop, model.functions[0]


def test_inputs_have_the_types_of_their_declarations() -> None:
    main, search, loop, _ = with_bodies()
    shown = [[str(value.type) for value in graph.inputs] for graph in (main, search, loop)]
    assert shown == [
        ["float[2]", "int64[]", "sequence", "float[N]"],
        ["float[D]", "float[?]"],
        ["int64[]", "bool[]", "float[?]", "sequence"],
    ]
    w = named(main, "w")
    main.order_inputs(main.inputs[::-1])
    assert str(w.type) == "float[N]"
    late = main.add_input("late", TensorType(1, ("L",)))
    main.remove_input(late)
    assert str(late.type) == "float[L]"
    assert list(violations(main.model)) == []


def test_an_input_is_of_its_own_graph() -> None:
    main, search, _, function = with_bodies()
    for graph, value in ((main, search.inputs[0]), (search, main.inputs[0])):
        with pytest.raises(ModelError, match="cannot be an input of graph"):
            graph.set_graph_inputs(
                [*graph.inputs, value], [*graph.input_infos, *main.input_infos[:1]]
            )
    function.remove_inputs([named(function, "o")])
    assert [value.name for value in function.inputs] == ["m"]
    main.model.undo_to(0)
    assert list(violations(main.model)) == []


def test_a_default_of_a_node_with_an_absent_output_is_a_constant() -> None:
    main = with_bodies()[0]
    w = named(main, "w")
    main.remove_input(w)
    main.mark_input(w)
    assert w.is_overridable
    assert list(violations(main.model)) == []


def test_outputs_keep_their_value_infos_and_lend_none_to_other_graphs() -> None:
    main, search, _, _ = with_bodies()
    y, a, z = (named(main, name) for name in "yaz")
    infos = {value: value.declared for value in (y, a, z)}
    assert [info and info.type.tensor_type.shape.dim[0].dim_param for info in infos.values()] == [
        "K", "M", "",
    ]  # fmt: skip
    main.exchange_output(y, a)
    main.exchange_output(z, y)
    found = [value.declared for value in (y, a, z)]
    assert found == [infos[y], infos[a], None]
    search.exchange_output(search.outputs[0], named(main, "c"))
    search.set_graph_outputs([named(main, "c")], search.output_infos)
    assert named(main, "c").declared is None
    main.set_graph_outputs([z, y], main.output_infos)
    main.exchange_output(y, z)
    assert main.outputs == (z, z)
    main.exchange_output(z, named(main, "c"))
    assert main.outputs[0].dtype == 7
    main.model.undo_to(0)
    assert list(violations(main.model)) == []
    assert [value.declared for value in (y, a, z)] == list(infos.values())
