"""The registry of demands: what operators ask of the values that they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from tiered.graph.opset.aspect import Aspect
from tiered.runtime.inputs.graph_facts import Fact, InputDependence

if TYPE_CHECKING:
    from tiered.graph import Node

Demand = Callable[[InputDependence, "Node", int], Iterator[Fact]]
"""Yields the constraints of a node on the value at one of its inputs."""

DEMANDS: Final[Aspect[Demand]] = Aspect("input")

input_rule = DEMANDS.rule
"""Registers a function as the rule of what operators demand of their inputs."""

OWN_AND_MICROSOFT: Final = ("", "com.microsoft")
"""The domains of operators that onnxruntime has for more types than ONNX."""
