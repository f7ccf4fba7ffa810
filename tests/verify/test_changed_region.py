"""The changed nodes of two models: found by content, cut out with what they read and write."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from tests.small import proto
from tiered.graph.core.tensor import Tensor
from tiered.runtime import run
from tiered.verify.changed_region import (
    PREFIX,
    Inside,
    RegionPair,
    _are_same,
    _changed_constants,
    bytes_read,
    changed_nodes,
    changed_region,
    grown,
    pieces,
    region_of,
    with_outputs,
    with_types,
    with_unchanged,
)
from tiered.verify.part_extraction import GraphPart

HEAD = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {3, 4}>"
# 0: a, 1: b, 2: c, 3: y
BEFORE = f"{HEAD} {{ a = Neg(x)  b = Mul(a, w)  c = Add(b, v)  y = Abs(c) }}"
AFTER = f"{HEAD} {{ a = Neg(x)  b = Mul(w, a)  c = Add(b, v)  y = Abs(c) }}"
X = np.array([1, -2], np.float32)


def sides(before: str = BEFORE, after: str = AFTER) -> tuple[GraphPart, GraphPart]:
    return GraphPart.of(proto(before)), GraphPart.of(proto(after))


def inside(before: str, after: str) -> tuple[set[int], set[int]]:
    found = changed_nodes(sides(before, after))
    return set(found[0]), set(found[1])


def region(before: str = BEFORE, after: str = AFTER) -> RegionPair:
    found = changed_region(proto(before), proto(after))
    assert found is not None
    return found


# --- which nodes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BEFORE, (set(), set())),
        (AFTER, ({1}, {1})),
        (f"{HEAD} {{ a = Neg(x)  b = Mul(a, w)  c = Add(b, v)  y = Neg(c) }}", ({3}, {3})),
        (f"{HEAD} {{ a = Neg(x)  b = Mul(a, w)  y = Add(b, v) }}", ({2, 3}, {2})),
        (f"{HEAD} {{ a = Neg(x)  c = Sub(v, x)  y = Abs(c) }}", ({1, 2}, {1})),
    ],
)
def test_nodes_that_are_on_one_side_only_are_changed(
    after: str, expected: tuple[set[int], set[int]]
) -> None:
    assert inside(BEFORE, after) == expected


def test_names_and_the_order_of_nodes_do_not_count() -> None:
    other = proto(BEFORE)
    nodes = [*other.graph.node]
    del other.graph.node[:]
    other.graph.node.extend(reversed(nodes))
    for node in other.graph.node:
        node.name, node.doc_string = f"other {node.name}", "a note"
        node.metadata_props.add(key="a", value="b")
    assert changed_nodes((GraphPart.of(proto(BEFORE)), GraphPart.of(other))) == (
        frozenset(),
        frozenset(),
    )
    assert changed_region(proto(BEFORE), other) is None


def test_consumers_of_a_changed_weight_are_changed() -> None:
    after = BEFORE.replace("{1, 2}", "{1, 3}")
    assert inside(BEFORE, after) == ({1}, {1})
    found = region(BEFORE, after)
    assert found.reads == ("a",)
    assert set(found.writes) == {"b"}


def test_other_versions_change_every_node() -> None:
    old = parser.parse_model('<ir_version: 10, opset_import: ["": 20]>' + BEFORE)
    found = changed_nodes((GraphPart.of(proto(BEFORE)), GraphPart.of(old)))
    assert found == (frozenset(range(4)), frozenset(range(4)))
    more = proto(BEFORE)
    more.opset_import.add(domain="own", version=1)
    assert changed_nodes((GraphPart.of(proto(BEFORE)), GraphPart.of(more)))[0] == frozenset(
        range(4)
    )


def test_only_what_was_touched_may_differ() -> None:
    pair = sides()
    assert changed_nodes(pair, {1}) == (frozenset({1}), frozenset({1}))
    assert changed_nodes(pair, {0, 2}) == (frozenset(), frozenset())
    weights = sides(BEFORE, BEFORE.replace("{1, 2}", "{1, 3}"))
    assert changed_nodes(weights, (), ["w"]) == (frozenset({1}), frozenset({1}))
    assert changed_nodes(weights, (), ["v", "nowhere"]) == (frozenset(), frozenset())


FUNCTIONS = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
    g (float[2] x) => (float[2] y) {{ a = own.Outer(x)  b = own.Other(a)  y = Neg(b) }}
    <domain: "own", opset_import: ["": 21, "own": 1]> Outer (x) => (y) {{ y = own.Inner(x) }}
    <domain: "own", opset_import: ["": 21]> Inner (x) => (y) {{ y = {0}(x) }}
    <domain: "own", opset_import: ["": 21]> Other (x) => (y) {{ y = Exp(x) }}"""


def test_calls_of_a_changed_function_are_changed_also_through_others() -> None:
    one, two = (GraphPart.of(parser.parse_model(FUNCTIONS.format(op))) for op in ("Abs", "Neg"))
    assert changed_nodes((one, two)) == (frozenset({0}), frozenset({0}))
    same = GraphPart.of(parser.parse_model(FUNCTIONS.format("Abs")))
    assert changed_nodes((one, same)) == (frozenset(), frozenset())


def test_large_weights_are_compared_by_identity() -> None:
    """Reading them would cost more than running their consumers again."""
    for size, is_read in ((4096, True), (4097, False)):
        made = [GraphPart.of(proto(BEFORE)) for _ in range(2)]
        for part in made:
            part.weights["w"] = Tensor.of(np.zeros(size, np.float32))
        before, after = made
        expected = frozenset() if is_read else frozenset({1})
        assert changed_nodes((before, after)) == (expected, expected)
        after.weights["w"] = before.weights["w"]
        assert changed_nodes((before, after)) == (frozenset(), frozenset())


def test_a_tensor_is_not_compared_with_a_proto() -> None:
    before, after = sides(BEFORE, BEFORE)
    after.weights["w"] = Tensor.of(np.array([1, 2], np.float32))
    assert changed_nodes((before, after)) == (frozenset({1}), frozenset({1}))


# --- the region -----------------------------------------------------------------------------------


def test_a_region_reads_and_writes_what_crosses_its_border() -> None:
    found = region()
    assert (found.reads, found.writes) == (("a",), ("b",))
    assert (found.inside, found.size, found.nbytes) == ((frozenset({1}), frozenset({1})), 1, 8)


def test_what_both_sides_do_not_have_is_not_written() -> None:
    after = f"{HEAD} {{ a = Neg(x)  d = Add(v, v)  c = Sub(d, a)  y = Abs(c) }}"
    found = region(BEFORE, after)
    assert found.writes == ("c",)
    assert found.reads == ("a",)
    assert found.size == 2
    assert found.nbytes == 16


def test_a_value_that_becomes_a_weight_is_written() -> None:
    before = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { c = Neg(w)  y = Add(x, c) }"
    after = "g (float[2] x) => (float[2] y) <float[2] c = {-1, -2}> { y = Add(x, c) }"
    found = region(before, after)
    assert (found.inside, found.writes, found.reads) == (
        (frozenset({0}), frozenset()), ("c",), ()
    )  # fmt: skip
    one, two = found.cuts({})
    assert run(_typed(one), {})[PREFIX + "c"].tolist() == [-1, -2]
    assert run(_typed(two), {})[PREFIX + "c"].tolist() == [-1, -2]


def test_dead_nodes_are_no_region() -> None:
    after = f"{HEAD} {{ a = Neg(x)  b = Mul(a, w)  c = Add(b, v)  y = Abs(c)  dead = Exp(x) }}"
    assert changed_region(proto(BEFORE), proto(after)) is None


def test_cuts_are_models_with_one_interface() -> None:
    found = region()
    types = {"a": onnx.helper.make_tensor_type_proto(1, [2])}
    before, after = found.cuts(types)
    for model in (before, after):
        assert [info.name for info in model.graph.input] == ["a"]
        assert [info.name for info in model.graph.output] == ["border b"]
        assert [node.op_type for node in model.graph.node] == ["Mul", "Identity"]
        assert run(_typed(model), {"a": X})["border b"].tolist() == [1, -4]


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    for info in model.graph.output:
        info.type.CopyFrom(onnx.helper.make_tensor_type_proto(1, [2]))
    return model


def test_inputs_get_the_types_of_feeds() -> None:
    model = region().cuts({})[0]
    typed = with_types(model, {"a": X})
    assert typed.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert not model.graph.input[0].HasField("type")


def test_inner_values_become_outputs_once() -> None:
    model = proto(BEFORE)
    probe = with_outputs(model, ["b", "y", "a"])
    assert [info.name for info in probe.graph.output] == ["y", "b", "a"]
    assert len(model.graph.output) == 1


def test_bytes_are_those_of_weights_once() -> None:
    part = GraphPart.of(proto(BEFORE))
    assert bytes_read(part, [1]) == 8
    assert bytes_read(part, [1, 2]) == 16
    assert bytes_read(part, [1, 1]) == 8
    assert bytes_read(part, [0, 3]) == 0
    part.weights["w"] = Tensor.of(np.zeros(100, np.float32))
    assert bytes_read(part, [1]) == 400


# --- more nodes -----------------------------------------------------------------------------------


def test_a_region_grows_by_unchanged_nodes_of_both_sides() -> None:
    pair = sides()
    start: Inside = (frozenset({1}), frozenset({1}))
    assert grown(pair, start, 0) == start
    assert grown(pair, start, 1) == (frozenset({0, 1, 2}), frozenset({0, 1, 2}))
    assert grown(pair, start, 9) == (frozenset(range(4)), frozenset(range(4)))


def test_a_node_with_another_number_has_its_twin() -> None:
    before, after = sides(BEFORE, BEFORE)
    node = after.nodes[2]
    after.exchange([2], {7: node})
    start: Inside = (frozenset({1}), frozenset({1}))
    assert with_unchanged((before, after), start, [2]) == (frozenset({1, 2}), frozenset({1, 7}))
    assert with_unchanged((before, after), start, [7]) == (frozenset({1, 2}), frozenset({1, 7}))
    other = onnx.helper.make_node("Sub", ["b", "v"], ["c"])
    after.exchange([7], {8: other})
    assert with_unchanged((before, after), start, [2]) == (frozenset({1, 2}), frozenset({1}))


def test_a_region_falls_apart_into_pieces_without_common_values() -> None:
    head = "g (float[2] x, float[2] z) => (float[2] y, float[2] v)"
    before = f"{head} {{ a = Neg(x)  y = Neg(a)  b = Exp(z)  v = Abs(b) }}"
    after = f"{head} {{ y = Identity(x)  c = Exp(z)  v = Identity(c) }}"
    pair = sides(before, after)
    found = {tuple(map(frozenset, each)) for each in pieces(pair, changed_nodes(pair))}
    assert found == {
        (frozenset({0, 1}), frozenset({0})),
        (frozenset({2, 3}), frozenset({1, 2})),
    }
    whole = region_of(pair, changed_nodes(pair))
    assert whole is not None
    assert (whole.reads, whole.writes) == (("x", "z"), ("y", "v"))


def test_pieces_meet_in_values_that_one_writes_and_another_reads() -> None:
    pair = sides(BEFORE, f"{HEAD} {{ a = Exp(x)  b = Div(a, w)  c = Sub(b, v)  y = Neg(c) }}")
    assert [tuple(map(len, each)) for each in pieces(pair, changed_nodes(pair))] == [(4, 4)]
    assert list(pieces(pair, (frozenset(), frozenset()))) == []


def test_weights_that_are_the_only_change_write_themselves() -> None:
    before, after = sides(BEFORE, BEFORE)
    after.weights["w"] = numpy_helper.from_array(np.array([5, 6], np.float32), "w")
    found = region_of((before, after), (frozenset(), frozenset()))
    assert found is not None
    assert (found.writes, found.reads) == (("w",), ())
    assert region_of((before, after), (frozenset(), frozenset()), ["v"]) is None


def test_only_constants_of_both_sides_may_be_other_ones() -> None:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float v = {1}> { y = Add(x, w) }"
    before = GraphPart.of(proto(text.replace(", float v = {1}", "")))
    after = GraphPart.of(proto(text.replace("{1, 2}", "{1, 3}")))
    assert _changed_constants(before, after) == {"w"}
    assert _changed_constants(before, after, ["w", "v", "u"]) == {"w"}
    assert _changed_constants(after, before, ["v"]) == set()
    weight = before.weights["w"]
    assert isinstance(weight, onnx.TensorProto)
    assert not _are_same(Tensor(weight), weight)
    assert not _are_same(weight, Tensor(weight))
    assert _are_same(Tensor(weight), Tensor(weight))
