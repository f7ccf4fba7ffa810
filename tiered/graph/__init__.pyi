from tiered.graph.api import Model as Model
from tiered.graph.core.dtypes import DataType as DataType
from tiered.graph.core.edit import Edit as Edit, Mark as Mark, Stamp as Stamp
from tiered.graph.core.gate import Gate as Gate, RewriteRecord as RewriteRecord
from tiered.graph.core.graph import Function as Function, Graph as Graph
from tiered.graph.core.interface_map import InterfaceMap as InterfaceMap
from tiered.graph.core.journal import Journal as Journal, Snapshot as Snapshot
from tiered.graph.core.live_dag import Slot as Slot
from tiered.graph.core.node import Node as Node
from tiered.graph.core.tensor import Tensor as Tensor
from tiered.graph.core.types import (
    OpaqueType as OpaqueType,
    TensorType as TensorType,
    ValueType as ValueType,
    broadcasts_into as broadcasts_into,
    non_negative_axes as non_negative_axes,
    same_axes as same_axes,
)
from tiered.graph.core.value import (
    Constant as Constant,
    Elements as Elements,
    Use as Use,
    Value as Value,
)
from tiered.graph.queries.determinism import is_deterministic as is_deterministic
from tiered.graph.queries.op_traits import ELEMENTWISE as ELEMENTWISE
from tiered.graph.queries.shape_sources import (
    is_shape_of as is_shape_of,
    shape_source as shape_source,
)
from tiered.graph.queries.spatial_pads import spatial_pads as spatial_pads
from tiered.graph.shape_inference.rules.control_flow_types import loop_turns as loop_turns
from tiered.graph.shape_inference.rules.shape_rule import (
    TypeRule as TypeRule,
    register_type_rule as register_type_rule,
    shape_rule as shape_rule,
    unregister_type_rule as unregister_type_rule,
)
from tiered.graph.shape_inference.type_coverage import TypeCoverage as TypeCoverage

__all__: list[str]
