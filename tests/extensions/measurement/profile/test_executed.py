"""Where nodes that were executed are from: names, and what onnxruntime inserted."""

import onnx
import pytest

from tiered.extensions.measurement.profile.executed import ExecutedPlaces, all_nodes, named
from tiered.testing import parse

CHAIN = "(float[2] x) => (float[2] y) { a = Relu(x)  b = Exp(a)  y = Tanh(b) }"


def with_names(model: onnx.ModelProto, *names: str) -> onnx.ModelProto:
    for node, name in zip(all_nodes(model.graph), names, strict=True):
        node.name = name
    return model


def test_each_node_gets_a_name_of_its_own() -> None:
    model = with_names(parse(CHAIN), "n", "", "n")
    own = named(model)
    names = [node.name for node in own.graph.node]
    assert (names[0], len(set(names)), "" in names) == ("n", 3, False)
    assert [node.name for node in model.graph.node] == ["n", "", "n"]
    assert named(own) is own
    twice = with_names(parse(CHAIN), "n", "m", "n")
    assert len({node.name for node in named(twice).graph.node}) == 3


def test_nodes_of_bodies_are_named_too() -> None:
    model = parse(
        "(bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) "
        "{ p = Exp(x) }, else_branch = e () => (float[2] q) { q = Tanh(x) }> }"
    )
    assert all(node.name for node in all_nodes(named(model).graph))
    assert len([*all_nodes(model.graph)]) == 3


def test_what_no_file_has_was_inserted() -> None:
    file = with_names(parse(CHAIN), "/l/a", "/l/b", "/l/y")
    executed = with_names(
        parse("(float[2] x) => (float[2] y) { p = Transpose(x)  y = Exp(p) }"), "t", "fused"
    )
    places = ExecutedPlaces(file, executed)
    inserted, fused = places.of("t", "Transpose"), places.of("fused", "Exp")
    assert (inserted.is_inserted, inserted.outputs, inserted.inputs) == (True, ("p",), ("x",))
    # The fused node computes y, which is that of /l/y in the file.
    assert (fused.is_inserted, fused.layer) == (False, ("l",))


def test_a_transpose_of_the_file_was_not_inserted() -> None:
    file = with_names(parse("(float[2,3] x) => (float[3,2] y) { y = Transpose(x) }"), "t")
    assert not ExecutedPlaces(file, None).of("t", "Transpose").is_inserted
    assert not ExecutedPlaces(file, None).of("_inlfunc_f_t", "Transpose").is_inserted
    assert ExecutedPlaces(file, None).of("u", "Transpose").is_inserted


def test_origins_come_from_the_metadata_of_the_file() -> None:
    file = with_names(parse(CHAIN), "a", "b", "c")
    file.graph.node[2].metadata_props.add(key="tiered.origins", value="first; second")
    executed = with_names(parse("(float[2] x) => (float[2] y) { y = Tanh(x) }"), "renamed")
    assert ExecutedPlaces(file, executed).of("renamed", "Tanh").origins == ("first", "second")


@pytest.mark.parametrize("name", ["", "unknown"])
def test_a_node_that_is_in_no_graph_has_no_place(name: str) -> None:
    place = ExecutedPlaces(parse(CHAIN), None).of(name, "Add")
    assert (place.layer, place.outputs, place.origins) == ((), (), ())


def test_a_node_in_the_blocked_layout_belongs_to_the_tensor_that_its_name_has() -> None:
    file = with_names(parse(CHAIN), "/one/Relu", "/two/Exp", "/three/Tanh")
    text = "(float[2] x) => (float[2] y) { p = Relu(x)  q = Exp(p)  y = Tanh(q) }"
    executed = with_names(parse(text), "b_nchwc", "y_nchwc_1", "c_nchwc")
    places = ExecutedPlaces(file, executed)
    assert places.of("b_nchwc", "Relu").layer == ("two",)
    assert places.of("y_nchwc_1", "Exp").layer == ("three",)
    assert places.of("c_nchwc", "Tanh").layer == ("three",)  # it computes y; there is no c


def test_a_new_name_is_none_that_another_node_has() -> None:
    model = with_names(parse(CHAIN), "", "a", "a")
    assert [node.name for node in named(model).graph.node] == ["a_1", "a", "a_2"]
    nameless = parse("(float[2] x) => (float[2] y) { y = Op(x) }")
    nameless.graph.node[0].ClearField("output")
    assert [node.name for node in named(nameless).graph.node] == ["Op_0"]


def test_a_node_of_a_name_with_another_operator_is_that_of_the_file() -> None:
    file = with_names(parse(CHAIN), "/l/a", "/l/b", "/l/y")
    executed = with_names(parse("(float[2] x) => (float[2] z) { z = Gelu(x) }"), "/l/b")
    place = ExecutedPlaces(file, executed).of("/l/b", "Exp")
    assert (place.inputs, place.outputs, place.layer) == (("a",), ("b",), ("l",))
    assert ExecutedPlaces(file, executed).of("/l/b", "Gelu").outputs == ("z",)


def test_operators_of_local_functions_were_not_inserted() -> None:
    file = parse("(float[2,3] x) => (float[3,2] y) { y = Transpose(x) }")
    inner = onnx.helper.make_node("Cast", ["a"], ["b"], name="inner", to=1)
    opsets = [onnx.helper.make_opsetid("", 17)]
    file.functions.append(onnx.helper.make_function("own", "f", ["a"], ["b"], [inner], opsets))
    assert not ExecutedPlaces(file, None).of("inner", "Cast").is_inserted
    assert ExecutedPlaces(file, None).of("other", "Cast").is_inserted
