"""The networkx view of a model, kept in step with ONNX, edit by edit."""

from tiered.graph.coverage import TypeCoverage
from tiered.graph.determinism import is_deterministic
from tiered.graph.elements import Elements
from tiered.graph.elementwise import ELEMENTWISE
from tiered.graph.gate import Gate, RewriteRecord
from tiered.graph.graph import Function, Graph
from tiered.graph.journal import Edit, Journal, Mark, Snapshot, Stamp
from tiered.graph.links import Slot
from tiered.graph.model import Model
from tiered.graph.node import Node
from tiered.graph.padding import spatial_pads
from tiered.graph.shape_sources import is_shape_of, shape_source
from tiered.graph.tensor import Tensor
from tiered.graph.turns import loop_turns
from tiered.graph.type_rules import TypeRule, register_type_rule, unregister_type_rule
from tiered.graph.types import (
    DataType,
    OpaqueType,
    TensorType,
    ValueType,
    broadcasts_into,
    non_negative_axes,
    same_axes,
)
from tiered.graph.value import Use, Value

__all__ = [
    "ELEMENTWISE",
    "DataType",
    "Edit",
    "Elements",
    "Function",
    "Gate",
    "Graph",
    "Journal",
    "Mark",
    "Model",
    "Node",
    "OpaqueType",
    "RewriteRecord",
    "Slot",
    "Snapshot",
    "Stamp",
    "Tensor",
    "TensorType",
    "TypeCoverage",
    "TypeRule",
    "Use",
    "Value",
    "ValueType",
    "broadcasts_into",
    "is_deterministic",
    "is_shape_of",
    "loop_turns",
    "non_negative_axes",
    "register_type_rule",
    "same_axes",
    "shape_source",
    "spatial_pads",
    "unregister_type_rule",
]
