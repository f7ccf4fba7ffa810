"""Tensors by name, the parts that outputs need, and names that are taken over."""

import pytest

from tests.small import made_by, named, ops, parsed
from tiered.graph import Model
from tiered.rewriter.idioms.main_tensors import (
    cut_at,
    drop_unused,
    initializers_matching,
    input_named,
    is_one_element,
    make_room,
    needed_nodes,
    output_named,
    take_name,
    tensor_named,
)
from tiered.support.errors import UsageError

TEXT = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g
    (float[2] data, bool p) => (float[2] y, float[2] z)
    <float[2] w_one = {1,2}, float[2] w_two = {3,4}, float[2] unused = {5,6}> {
    a = Add(data, w_one)  b = Neg(a)  c = Mul(a, w_two)
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(b) },
               else_branch = e () => (float[2] v) { v = Abs(data) }>
    z = local.F(c) }
    <domain: "local", opset_import: ["" : 21]> F (m) => (n) { inner = Neg(m)  n = Abs(inner) }"""


@pytest.fixture
def model() -> Model:
    return parsed(TEXT)


def test_tensors_of_the_main_graph_have_their_names(model: Model) -> None:
    assert tensor_named(model, "b", "p") is named(model, "b")
    assert input_named(model, "data", "p") is named(model, "data")
    assert output_named(model, "z", "p") is named(model, "z")


@pytest.mark.parametrize(
    ("find", "name", "because"),
    [
        (tensor_named, "datta", "mine: the main graph has no tensor 'datta'; did you mean 'data'"),
        (tensor_named, "u", "is a tensor of the body 'then_branch' of node"),
        (tensor_named, "inner", "is a tensor of the local function 'F'"),
        (input_named, "date", "mine: the model has no input 'date'; did you mean 'data'"),
        (input_named, "zzz", "has no input 'zzz'; it has data, p"),
        (output_named, "a", "mine: the model has no output 'a'"),
    ],
)
def test_another_name_is_an_error_that_says_where_it_is(
    model: Model, find: object, name: str, because: str
) -> None:
    assert callable(find)
    with pytest.raises(UsageError, match=because):
        find(model, name, "mine")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], ["w_one", "w_two", "unused"]),
        (["w_*"], ["w_one", "w_two"]),
        (["w_two", "unused"], ["w_two", "unused"]),
    ],
)
def test_initializers_by_names_and_globs(
    model: Model, patterns: list[str], expected: list[str]
) -> None:
    assert [value.name for value in initializers_matching(model, patterns, "mine")] == expected


@pytest.mark.parametrize("pattern", ["w_three", "v_*"])
def test_a_pattern_that_meets_nothing_is_an_error(model: Model, pattern: str) -> None:
    with pytest.raises(UsageError, match=f"mine: no initializer is named '{pattern[0]}"):
        initializers_matching(model, ["w_one", pattern], "mine")


def test_what_an_output_needs_are_nodes_and_what_their_bodies_read(model: Model) -> None:
    needed = needed_nodes([named(model, "y")])
    assert {node.output.name for node in needed} == {"a", "b", "y"}
    assert {value.name for value in made_by(model, "y").reads} == {"p", "b", "data"}
    known = needed_nodes([named(model, "y")], [named(model, "b")])
    assert {node.output.name for node in known} == {"y"}
    assert needed_nodes([named(model, "y")], [named(model, "y")]) == set()


def test_a_cut_makes_an_input_of_a_computed_value(model: Model) -> None:
    made = cut_at(model.main, named(model, "a"))
    assert made.is_graph_input
    assert named(model, "a").n_users == 0
    assert made_by(model, "b").inputs == (made,)


def test_a_name_is_taken_from_another_value(model: Model) -> None:
    value, other = named(model, "b"), named(model, "c")
    take_name(model.main, value, "c")
    assert value.name == "c"
    assert other.name != "c"
    take_name(model.main, value, "c")
    assert value.name == "c"


def test_room_is_made_in_the_main_graph_and_its_bodies_alone(model: Model) -> None:
    assert make_room(model, "u", lambda name: f"{name}_other") == ["u_other"]
    assert make_room(model, "inner", lambda name: f"{name}_other") == []
    assert make_room(model, "b", lambda name: f"{name}_other") == ["b_other"]


def test_what_no_output_needs_goes(model: Model) -> None:
    graph = model.main
    graph.set_graph_outputs([named(model, "z")], graph.output_infos[1:])
    drop_unused(graph)
    assert ops(model) == ["Add", "Mul", "F"]
    assert [value.name for value in graph.inputs] == ["data"]
    assert [value.name for value in graph.initializers] == ["w_one", "w_two"]


def test_inputs_that_are_kept_stay(model: Model) -> None:
    graph = model.main
    graph.set_graph_outputs([named(model, "z")], graph.output_infos[1:])
    drop_unused(graph, [named(model, "p")])
    assert [value.name for value in graph.inputs] == ["data", "p"]


def test_an_unused_default_of_an_input_that_is_kept_stays() -> None:
    model = parsed("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Neg(x) }")
    graph, w = model.main, named(model, "w")
    drop_unused(graph, [w])
    assert [value.name for value in graph.inputs] == ["x", "w"]
    assert w.default is not None
    drop_unused(graph)
    assert [value.name for value in graph.inputs] == ["x"]
    assert not graph.initializers


def test_a_name_is_no_glob_where_an_initializer_has_it(model: Model) -> None:
    model.main.rename_value(named(model, "w_one"), "w[1]")
    assert [each.name for each in initializers_matching(model, ["w[1]"], "p")] == ["w[1]"]


def test_a_model_without_inputs_has_none_to_name() -> None:
    model = parsed("() => (float[2] y) <float[2] w = {1,2}> { y = Neg(w) }")
    with pytest.raises(UsageError) as caught:
        input_named(model, "x", "p")
    assert str(caught.value) == "p: the model has no input 'x'"


def test_a_node_that_is_needed_twice_is_there_once(model: Model) -> None:
    outputs = [named(model, name) for name in ("y", "z", "c")]
    assert len(needed_nodes(outputs)) == 5
    assert needed_nodes(outputs, [named(model, name) for name in ("a", "y")]) == {
        made_by(model, "c"),
        made_by(model, "z"),
    }


@pytest.mark.parametrize(
    ("dims", "rank", "is_one"),
    [
        ("", 0, True), ("[1]", 0, False), ("[1]", 1, True), ("[1,1]", 2, True),
        ("[1,1]", 1, False), ("[2]", 1, False), ("[1,2]", 2, False), ("[0]", 1, False),
        ("[N]", 1, False), ("[]", 1, False),
    ],
)  # fmt: skip
def test_one_element_is_of_no_higher_rank(dims: str, rank: int, is_one: bool) -> None:
    model = parsed(f"(float{dims} x) => (float{dims} y) {{ y = Neg(x) }}")
    assert is_one_element(named(model, "x"), rank) is is_one
