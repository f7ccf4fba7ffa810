"""Parts of a model: which nodes read, produce and need which values, and models cut out of them."""

from collections.abc import Collection
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from tests.small import HEADER, proto
from tiered.graph.core.tensor import Tensor
from tiered.runtime import run
from tiered.verify.part_extraction import GraphPart, calls, cut, names_read, tapped

# 0: a, 1: b, 2: k, 3: c, 4: d, 5: y
TEXT = """g (float[2] x, float[2] z) => (float[2] y, float[2] b) <float[2] w = {1, 2}> {
    a = Neg(x)  b = Mul(a, w)  k = Constant<value = float[2] {3, 4}>()  c = Add(b, k)
    d = Sub(z, c)  y = Mul(d, w) }"""
IF = """g (bool t, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)
    y = If(t)<then_branch = p () => (float[2] u) <float[2] v = {5, 6}> {
                  q = Add(a, v)  u = Neg(q) },
              else_branch = e () => (float[2] w) {}>
    }"""
CALLING = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
    g (float[2] x) => (float[2] y, float[2] z) { y = own.Outer(x)  z = Neg(x) }
    <domain: "own", opset_import: ["": 21, "own": 1]> Outer (x) => (y) {
        t = own.Inner(x)  y = Neg(t) }
    <domain: "own", opset_import: ["": 21]> Inner (x) => (y) { y = Abs(x) }
    <domain: "own", opset_import: ["": 21]> Unused (x) => (y) { y = Exp(x) }"""
X, Z = np.array([1, 2], np.float32), np.array([10, 10], np.float32)


def part(text: str = TEXT) -> GraphPart:
    return GraphPart.of(proto(text))


def names(infos: Collection[Any]) -> list[str]:
    return [info.name for info in infos]


def test_a_part_knows_who_reads_and_who_produces() -> None:
    made = part()
    assert list(made.nodes) == list(range(6)) == sorted(made.everything())
    assert made.producer == {"a": 0, "b": 1, "k": 2, "c": 3, "d": 4, "y": 5}
    assert made.consumers == {
        "x": {0}, "a": {1}, "w": {1, 5}, "b": {3}, "k": {3}, "z": {4}, "c": {4}, "d": {5},
    }  # fmt: skip
    assert made.reads[4] == ("z", "c")
    assert (list(made.inputs), list(made.outputs), list(made.weights)) == (
        ["x", "z"], ["y", "b"], ["w"]
    )  # fmt: skip
    assert made.name == "g"
    assert not made.frame.graph.node
    assert [each.version for each in made.frame.opset_import] == [21]


def test_nodes_are_exchanged() -> None:
    made = part()
    new = onnx.helper.make_node("Div", ["x", "c", "", "x"], ["d", ""])
    made.exchange([4, 0], {7: new})
    assert made.producer == {"b": 1, "k": 2, "c": 3, "y": 5, "d": 7}
    assert made.reads[7] == ("x", "c")
    assert 4 not in made.nodes
    assert 0 not in made.reads
    assert made.consumers["x"] == {7}
    assert made.consumers["z"] == frozenset()
    assert made.consumers["c"] == {7}


def test_a_node_may_take_the_place_of_the_producer_of_its_output() -> None:
    made = part()
    made.exchange([], {9: onnx.helper.make_node("Exp", ["x"], ["a"])})
    assert made.producer["a"] == 9
    made.exchange([0], {})
    assert made.producer["a"] == 9
    assert made.consumers["x"] == {9}


def test_a_copy_is_apart() -> None:
    made = part()
    other = made.copy()
    other.exchange([0], {})
    other.weights.clear()
    assert made.producer["a"] == 0
    assert 0 in made.nodes
    assert 0 in made.reads
    assert made.consumers["x"] == {0}
    assert list(made.weights) == ["w"]


def test_a_part_of_some_nodes() -> None:
    made = part().only([1, 3])
    assert set(made.nodes) == {1, 3}
    assert made.producer == {"b": 1, "c": 3}
    assert made.consumers == {"a": {1}, "w": {1}, "b": {3}, "k": {3}}
    assert list(made.weights) == ["w"]


@pytest.mark.parametrize(
    ("start", "steps", "found"),
    [
        ({3}, 0, {3, 2}),  # with the Constant that it reads
        ({3}, 1, {1, 2, 3, 4}),
        ({1}, 1, {0, 1, 3, 2}),
        ({4}, 2, {4, 3, 5, 1, 2}),
        (set(), 3, set()),
    ],
)
def test_a_region_grows_step_by_step(start: set[int], steps: int, found: set[int]) -> None:
    assert part().grown(start, steps) == found


def test_the_nodes_around_values() -> None:
    assert part().around(["d", "x", "w", "nowhere"], 0) == {4}
    assert part().around(["a"], 1) == {0, 1}


@pytest.mark.parametrize(
    ("wanted", "known", "found"),
    [
        (["b"], [], {0, 1}), (["y"], [], {0, 1, 2, 3, 4, 5}), (["y"], ["c"], {4, 5}),
        (["y"], ["d"], {5}), (["y"], ["y"], set()), (["x", "w"], [], set()),
        (["a", "k"], [], {0, 2}),
    ],
)  # fmt: skip
def test_the_nodes_that_are_needed(wanted: list[str], known: list[str], found: set[int]) -> None:
    assert part().needed(wanted, known) == found


def test_the_border_of_nodes() -> None:
    made = part()
    assert made.border({3, 4}) == ["b", "k", "z"]
    assert made.border({5}) == ["d"]
    assert made.border({5}, ["y", "a", "w"]) == ["d", "a"]
    defaulted = proto("g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }")
    defaulted.graph.initializer.append(numpy_helper.from_array(X, "w"))
    assert GraphPart.of(defaulted).border({0}) == ["x", "w"]


def test_the_results_of_nodes() -> None:
    made = part()
    assert made.results({0, 1}) == ["b"]
    assert made.results({1, 3}) == ["b", "c"]  # b is an output
    assert made.results({0}) == ["a"]
    assert made.results({3, 4, 5}) == ["y"]
    assert not made.is_read_outside("c", {4})
    assert made.is_read_outside("c", {3})
    assert made.is_read_outside("w", {5})
    assert [made.has(name) for name in ("x", "w", "a", "nowhere")] == [True, True, True, False]


def test_weights_are_arrays_wherever_they_are() -> None:
    made = part()
    assert made.array("w").tolist() == [1, 2]
    made.weights["w"] = Tensor.of(np.array([7, 8], np.float32))
    assert made.array("w").tolist() == [7, 8]


def test_nodes_are_in_topological_order_and_else_by_number() -> None:
    made = part()
    assert made.in_order({5, 4, 0, 1, 3, 2}) == [0, 1, 2, 3, 4, 5]
    assert made.in_order({4, 0}) == [0, 4]
    late = made.only([5, 2])
    late.exchange([], {9: made.nodes[4], 1: made.nodes[1], 8: made.nodes[0], 3: made.nodes[3]})
    assert late.in_order(late.nodes) == [8, 1, 2, 3, 9, 5]


def test_a_cycle_ends() -> None:
    made = part("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    made.exchange([0], {1: onnx.helper.make_node("Neg", ["b"], ["a"]),
                        2: onnx.helper.make_node("Neg", ["a"], ["b"])})  # fmt: skip
    assert sorted(made.in_order({1, 2})) == [1, 2]


# --- models of parts ------------------------------------------------------------------------------


def test_a_cut_is_a_model_of_its_own() -> None:
    made = part()
    model = cut(made, {3, 4, 2}, {})
    assert names(model.graph.input) == ["z", "b"]
    assert names(model.graph.output) == ["d"]
    assert not model.graph.initializer
    assert [node.output[0] for node in model.graph.node] == ["k", "c", "d"]
    assert model.ir_version == 10
    found = run(model, {"z": Z, "b": X})
    assert found["d"].tolist() == [6, 4]


def test_a_cut_has_only_the_weights_and_types_that_it_needs() -> None:
    typed = proto(TEXT)
    typed.graph.value_info.extend(
        onnx.helper.make_tensor_value_info(name, 1, [2]) for name in ("a", "c", "d", "k")
    )
    made = GraphPart.of(typed)
    model = cut(made, {4, 5}, {})
    assert names(model.graph.initializer) == ["w"]
    assert names(model.graph.input) == ["z", "c"]
    assert model.graph.input[1].type.tensor_type.elem_type == 1
    assert names(model.graph.value_info) == ["d"]


def test_a_cut_takes_results_reads_and_types() -> None:
    made = part()
    float_ = onnx.helper.make_tensor_type_proto(1, [2])
    model = cut(made, {1}, {"a": float_}, ["b", "w", "z"], ["z", "a", "x"])
    assert names(model.graph.input) == ["z", "a", "x"]
    assert model.graph.input[1].type == float_
    assert names(model.graph.output) == ["b", "w", "z"]
    assert names(model.graph.initializer) == ["w"]
    assert not cut(made, {1}, {}).graph.input[0].HasField("type")


def test_weights_of_a_view_are_written() -> None:
    made = part()
    made.weights["w"] = Tensor.of(np.array([7, 8], np.float32))
    model = cut(made, {1}, {})
    assert numpy_helper.to_array(model.graph.initializer[0]).tolist() == [7, 8]
    assert model.graph.initializer[0].name == "w"


def test_sparse_weights_keep_their_form_and_name() -> None:
    model = proto("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    values = numpy_helper.from_array(np.array([5], np.float32), "s")
    indices = numpy_helper.from_array(np.array([1]), "")
    sparse = onnx.helper.make_sparse_tensor(values, indices, [2])
    model.graph.sparse_initializer.append(sparse)
    made = GraphPart.of(model)
    made.weights["other"] = Tensor(sparse)
    found = cut(made, {0}, {}, ["y", "s", "other"])
    assert [each.values.name for each in found.graph.sparse_initializer] == ["s", "other"]
    assert not found.graph.initializer


def test_a_tapped_model_has_other_outputs_and_no_more_nodes_than_they_need() -> None:
    model = tapped(proto(TEXT), ["c", "a", "c"], {})
    assert names(model.graph.output) == ["c", "a"]
    assert [node.output[0] for node in model.graph.node] == ["a", "b", "k", "c"]
    assert names(model.graph.input) == ["x"]
    found = run(_typed(model), {"x": X})
    assert (found["c"].tolist(), found["a"].tolist()) == ([2, 0], [-1, -2])


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    for info in model.graph.output:
        info.type.CopyFrom(onnx.helper.make_tensor_type_proto(1, [2]))
    return model


# --- bodies and functions -------------------------------------------------------------------------


def test_bodies_capture_values_that_they_do_not_make() -> None:
    node = parser.parse_model(HEADER + IF).graph.node[1]
    assert list(names_read(node)) == ["t", "a", "w"]
    made = GraphPart.of(parser.parse_model(HEADER + IF))
    assert made.reads[1] == ("t", "a", "w")
    model = cut(made, {1}, {})
    assert names(model.graph.input) == ["t", "a"]
    assert names(model.graph.initializer) == ["w"]


def test_inputs_of_bodies_are_not_captured() -> None:
    text = """g (int64 n, bool c, float[2] s, float[2] x) => (float[2] y) {
        y = Loop(n, c, s)<body = b (int64 i, bool k, float[2] x) => (bool k2, float[2] t) {
            k2 = Identity(k)  t = Neg(x) }> }"""
    assert list(names_read(parser.parse_model(HEADER + text).graph.node[0])) == ["n", "c", "s"]


def test_functions_are_cut_with_their_callers() -> None:
    made = GraphPart.of(parser.parse_model(CALLING))
    assert [name for _, name, _ in made.callees] == ["Inner", "Outer", "Unused"]
    assert names(cut(made, {0}, {}).functions) == ["Inner", "Outer"]
    assert not cut(made, {1}, {}).functions
    assert list(calls(made.nodes[0])) == [("own", "Outer", "")]


def test_calls_in_bodies_are_calls() -> None:
    node = parser.parse_model(HEADER + IF).graph.node[1]
    assert {name for _, name, _ in calls(node)} == {"If", "Add", "Neg"}


def test_a_graph_without_a_name_and_outputs_without_one_are_parts_too() -> None:
    given = proto("g (float[2,4] x, int64[1] k) => (int64[2,1] y) { v, y = TopK(x, k) }")
    given.graph.name = ""
    given.graph.node[0].output[0] = ""
    part = GraphPart.of(given)
    assert part.name == "part"
    assert part.results([0]) == ["y"]
    assert part.results(()) == []
