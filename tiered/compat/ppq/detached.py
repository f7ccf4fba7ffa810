"""Operations and variables that are in no graph yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from tiered.graph import Graph, Model, Node, Value
from tiered.support.errors import ModelError

NOWHERE = "tiered.compat.ppq: in no graph yet"
"""The name of the graph of an operation or variable that was made by its name."""


def _nowhere() -> Graph:
    """Return a graph for one operation or variable that is in no graph yet."""
    empty = onnx.helper.make_graph([], NOWHERE, [], [])
    return Model.from_proto(onnx.helper.make_model(empty)).main


def free_node(name: str, op_type: str, attributes: Mapping[str, Any] | None) -> Node:
    if not op_type:
        raise ModelError(f"operation {name!r} needs a type, as in Operation({name!r}, 'Relu')")
    return _nowhere().add_node(op_type, (), (), attributes, name=name)


def free_value(name: str, contents: np.ndarray[Any, Any] | None) -> Value:
    graph = _nowhere()
    source = graph.add_node("Identity", (), ()) if contents is None else None
    return graph.create_value(name, contents, source)
