"""A tree ensemble: few nodes whose attributes are lists of millions of numbers and texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

FEATURES = 50
TREE = 1000
"""Nodes of a tree."""


def make_trees(path: Path, trees: int) -> None:
    """Write a model with so many trees, between elementwise operators."""
    count = trees * TREE
    random, place = np.random.default_rng(0), np.arange(count)
    lists = {
        "nodes_falsenodeids": (place % TREE).tolist(),
        "nodes_truenodeids": (place % TREE).tolist(),
        "nodes_nodeids": (place % TREE).tolist(),
        "nodes_featureids": random.integers(0, FEATURES, count).tolist(),
        "nodes_treeids": (place // TREE).tolist(),
        "nodes_values": random.standard_normal(count).tolist(),
        "nodes_modes": ["BRANCH_LEQ"] * count,
        "target_ids": [0] * count,
        "target_nodeids": (place % TREE).tolist(),
        "target_treeids": (place // TREE).tolist(),
        "target_weights": random.standard_normal(count).tolist(),
    }
    ensemble = helper.make_node(
        "TreeEnsembleRegressor", ["a"], ["t"], domain="ai.onnx.ml", n_targets=1, **lists
    )
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("Identity", ["r"], ["a"]),
            ensemble,
            helper.make_node("Neg", ["t"], ["u"]),
            helper.make_node("Abs", ["u"], ["y"]),
        ],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
