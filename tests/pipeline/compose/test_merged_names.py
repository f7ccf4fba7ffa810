"""The tensors and nodes of a second model get names that the first one does not have."""

import numpy as np
import onnx
import pytest

from tests.small import parsed
from tiered import ModelError
from tiered.graph import Model
from tiered.pipeline.compose.connections import joints
from tiered.pipeline.compose.merged_names import rename_nodes, rename_tensors
from tiered.testing import parse

FIRST = """(float[2] x) => (float[2] h) <float[2] w = {1,2}> { t = Add(x, w)  h = Neg(t) }"""


def renamed(
    second: str, first: str = FIRST, connect: object = None, prefix: str = ""
) -> tuple[Model, Model, list[str]]:
    one, two = parsed(first), parsed(second)
    made = joints(one, two, connect, prefix=prefix, may_be_apart=True)  # type: ignore[arg-type]  # as given
    common = rename_tensors(one, two, made, prefix)
    one.check_view()
    two.check_view()
    return one, two, common


def values(model: Model) -> list[str]:
    return sorted(model.main.values)


def test_a_connected_input_has_the_name_of_its_output() -> None:
    _, two, common = renamed("(float[2] a) => (float[2] y) { y = Abs(a) }", connect={"h": "a"})
    assert values(two) == ["h", "y"]
    assert common == ["h"]


def test_inner_names_that_are_taken_get_a_number() -> None:
    second = "(float[2] h) => (float[2] y) <float[2] w = {5,6}> { t = Mul(h, w)  y = Abs(t) }"
    _, two, common = renamed(second)
    assert values(two) == ["h", "t_1", "w_1", "y"]
    assert common == ["h"]


def test_equal_weights_are_one() -> None:
    second = "(float[2] h) => (float[2] y) <float[2] w = {1,2}> { y = Mul(h, w) }"
    _, two, common = renamed(second)
    assert values(two) == ["h", "w", "y"]
    assert sorted(common) == ["h", "w"]
    _, two, _ = renamed(second, prefix="b_")
    assert values(two) == ["b_w", "b_y", "h"]


def test_weights_that_callers_may_feed_are_not_one() -> None:
    first = "(float[2] x) => (float[2] h) <float[2] w = {1,2}> { h = Add(x, w) }"
    second = "(float[2] h, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Mul(h, w) }"
    with pytest.raises(ModelError, match="input 'w' of the second model is a tensor of the first"):
        renamed(second, first)


def test_a_weight_that_is_an_output_is_its_own() -> None:
    second = "(float[2] h) => (float[2] y, float[2] w) <float[2] w = {1,2}> { y = Mul(h, w) }"
    one, two, _ = renamed(second)
    # The weight of the first model makes room for the output of that name.
    assert values(two) == ["h", "w", "y"]
    assert values(one) == ["h", "t", "w_1", "x"]


def test_inner_tensors_of_the_first_model_make_room_for_outputs_of_the_second() -> None:
    one, two, _ = renamed("(float[2] h) => (float[2] t) { t = Abs(h) }")
    assert values(one) == ["h", "t_1", "w", "x"]
    assert values(two) == ["h", "t"]


@pytest.mark.parametrize(
    ("second", "because"),
    [
        ("(float[2] a) => (float[2] x) { x = Abs(a) }",
         "both models have a tensor 'x', which is an output of the second; rename it, or give a"),
        ("(float[2] a, float[2] t) => (float[2] y) { y = Add(a, t) }",
         "input 't' of the second model is a tensor of the first; connect or rename it"),
        ("(float[2] a, float[2] h) => (float[2] y) { y = Add(a, h) }",
         "input 'h' of the second model is a tensor of the first; connect or rename it"),
    ],
)  # fmt: skip
def test_names_of_the_interface_that_are_taken_are_an_error(second: str, because: str) -> None:
    with pytest.raises(ModelError) as caught:
        renamed(second, connect={"h": "a"})
    assert str(caught.value).startswith(because)


def test_a_prefix_is_before_all_names_but_those_connected() -> None:
    second = "(float[2] a, float[2] b) => (float[2] y) { t = Mul(a, b)  y = Abs(t) }"
    _, two, common = renamed(second, connect={"h": "a"}, prefix="b_")
    assert values(two) == ["b_b", "b_t", "b_y", "h"]
    assert common == ["h"]


def test_names_may_change_places() -> None:
    second = "(float[2] a) => (float[2] y) { h = Abs(a)  y = Neg(h) }"
    _, two, _ = renamed(second, connect={"h": "a"})
    assert values(two) == ["h", "h_1", "y"]
    assert two.main.nodes[0].inputs[0] is two.main.values["h"]


def test_inputs_that_are_one_output_become_one_input() -> None:
    second = "(float[2] p, float[2] q) => (float[2] y) { y = Sub(p, q) }"
    _, two, common = renamed(second, connect={"h": ["p", "q"]})
    assert [value.name for value in two.main.inputs] == ["h"]
    assert [value and value.name for value in two.main.nodes[0].inputs] == ["h", "h"]
    assert common == ["h"]


def test_names_in_bodies_count() -> None:
    first = """(float[2] x, bool c) => (float[2] h) { h = If(c) <
        then_branch = t () => (float[2] p) { p = Neg(x) },
        else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    _, two, _ = renamed("(float[2] h) => (float[2] y) { p = Abs(h)  y = Neg(p) }", first)
    assert values(two) == ["h", "p_1", "y"]


def test_a_name_in_a_body_of_the_second_model_makes_room() -> None:
    second = """(float[2] a, bool c) => (float[2] y) { y = If(c) <
        then_branch = t () => (float[2] h) { h = Neg(a) },
        else_branch = e () => (float[2] t) { t = Abs(a) }> }"""
    _, two, _ = renamed(second, connect={"h": "a"})
    (node,) = two.main.nodes
    assert values(two) == ["c", "h", "y"]
    assert [sorted(body.values) for body in node.bodies] == [["h_1"], ["t"]]
    assert [[value.name for value in body.nodes[0].reads] for body in node.bodies] == [["h"]] * 2


def test_sparse_weights_are_not_one() -> None:
    models = []
    for text in (FIRST, "(float[2] h) => (float[2] y) <float[2] w = {1,2}> { y = Mul(h, w) }"):
        proto = parse(text)
        indices = onnx.numpy_helper.from_array(np.array([0, 1], np.int64), "indices")
        proto.graph.sparse_initializer.append(
            onnx.helper.make_sparse_tensor(proto.graph.initializer.pop(), indices, [2])
        )
        models.append(Model.from_proto(proto))
    made = joints(models[0], models[1], None, prefix="", may_be_apart=True)
    assert rename_tensors(models[0], models[1], made, "") == ["h"]
    assert values(models[1]) == ["h", "w_1", "y"]


def nodes(prefix: str, *taken: str) -> list[str]:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x, bool c) => (float[2] y) {
        [a] t = Neg(x)  u = Abs(t)
        [b] y = If(c) <then_branch = t () => (float[2] p) { [a] p = Neg(u) },
                       else_branch = e () => (float[2] q) { [d] q = Abs(u) }> }"""
    )
    rename_nodes(proto, set(taken), prefix)
    names = [node.name for node in proto.graph.node]
    return names + [each.g.node[0].name for each in proto.graph.node[2].attribute]


def test_names_of_nodes_are_each_others_own() -> None:
    found = nodes("", "b")
    assert found[1] == ""
    assert len({*found}) == 5
    assert found[2] == "b_1"
    assert sorted(found) == ["", "a", "a_1", "b_1", "d"]


def test_a_prefix_is_before_names_of_nodes() -> None:
    assert sorted(nodes("z_")) == ["", "z_a", "z_a_1", "z_b", "z_d"]
