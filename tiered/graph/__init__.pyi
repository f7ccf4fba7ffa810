from tiered.graph.api import Model as Model
from tiered.graph.core.dtypes import DataType as DataType
from tiered.graph.core.gate import Gate as Gate
from tiered.graph.core.gate import RewriteRecord as RewriteRecord
from tiered.graph.core.graph import Function as Function
from tiered.graph.core.graph import Graph as Graph
from tiered.graph.core.journal import (
    Edit as Edit,
)
from tiered.graph.core.journal import (
    Journal as Journal,
)
from tiered.graph.core.journal import (
    Mark as Mark,
)
from tiered.graph.core.journal import (
    Snapshot as Snapshot,
)
from tiered.graph.core.journal import (
    Stamp as Stamp,
)
from tiered.graph.core.node import Node as Node
from tiered.graph.core.tensor import Tensor as Tensor
from tiered.graph.core.types import (
    OpaqueType as OpaqueType,
)
from tiered.graph.core.types import (
    TensorType as TensorType,
)
from tiered.graph.core.types import (
    ValueType as ValueType,
)
from tiered.graph.core.types import (
    broadcasts_into as broadcasts_into,
)
from tiered.graph.core.types import (
    non_negative_axes as non_negative_axes,
)
from tiered.graph.core.types import (
    same_axes as same_axes,
)
from tiered.graph.core.use_lists import Slot as Slot
from tiered.graph.core.value import (
    Constant as Constant,
)
from tiered.graph.core.value import Elements as Elements
from tiered.graph.core.value import Use as Use
from tiered.graph.core.value import (
    Value as Value,
)
from tiered.graph.queries.op_traits import ELEMENTWISE as ELEMENTWISE
from tiered.graph.queries.op_traits import is_deterministic as is_deterministic
from tiered.graph.queries.op_traits import spatial_pads as spatial_pads
from tiered.graph.queries.shape_sources import (
    is_shape_of as is_shape_of,
)
from tiered.graph.queries.shape_sources import (
    shape_source as shape_source,
)
from tiered.graph.shape_inference.rules.control_flow import loop_turns as loop_turns
from tiered.graph.shape_inference.rules.shape_rule import (
    TypeRule as TypeRule,
)
from tiered.graph.shape_inference.rules.shape_rule import (
    register_type_rule as register_type_rule,
)
from tiered.graph.shape_inference.rules.shape_rule import (
    shape_rule as shape_rule,
)
from tiered.graph.shape_inference.rules.shape_rule import (
    unregister_type_rule as unregister_type_rule,
)
from tiered.graph.shape_inference.type_coverage import TypeCoverage as TypeCoverage

__all__: list[str]
