"""Nodes for the checker without the long lists of trees and support vectors."""

import onnx

from tests.small import made_by, parsed
from tiered.graph import Node
from tiered.graph.queries.long_lists import has_long_lists, shortened

HEADER = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3, "vendor": 1]> g'
CALLS = {
    "ai.onnx.ml.TreeEnsembleRegressor(x)": True,
    "ai.onnx.ml.SVMRegressor(x)": True,
    "ai.onnx.ml.Scaler(x)": False,
    "vendor.TreeEnsembleRegressor(x)": False,
}


def node_of(call: str) -> Node:
    return made_by(parsed(f"{HEADER} (float[2,2] x) => (float[?] y) {{ y = {call} }}"), "y")


def listed(node: Node, name: str, count: int) -> dict[str, int]:
    """Give a node a list of floats, and return the lengths of lists of its shortened proto."""
    attribute = onnx.helper.make_attribute(name, [float(at) for at in range(count)])
    node.proto.attribute.append(attribute)
    found = shortened(node)
    assert (found.op_type, found.domain, list(found.output)) == (
        node.op_type, node.domain, ["y"],
    )  # fmt: skip
    return {each.name: len(each.floats) for each in found.attribute}


def test_which_operators_may_have_long_lists() -> None:
    for call, expected in CALLS.items():
        node = node_of(call)
        assert has_long_lists(node.owner) is expected, call
        assert listed(node, "nodes_values", 1025) == {"nodes_values": 1 if expected else 1025}


def test_short_lists_and_lists_of_classes_stay() -> None:
    tree = "ai.onnx.ml.TreeEnsembleRegressor(x)"
    node = node_of(tree)
    assert listed(node, "nodes_values", 1024) == {"nodes_values": 1024}
    assert shortened(node) is node.proto
    assert listed(node_of(tree), "class_weights", 1025) == {"class_weights": 1025}
    node = node_of(tree)
    node.proto.attribute.append(onnx.helper.make_attribute("base_values", [1.0, 2.0]))
    assert listed(node, "nodes_values", 2000) == {"base_values": 2, "nodes_values": 1}


def test_a_graph_from_which_they_went_has_none() -> None:
    node = node_of("ai.onnx.ml.SVMRegressor(x)")
    graph = node.owner
    graph.replace(node, [graph.op.Neg(node.given(0))])
    assert not has_long_lists(graph)
