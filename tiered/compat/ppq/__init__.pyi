from tiered.compat.ppq.elements import (
    PLATFORM as PLATFORM,
    Attributes as Attributes,
    Operation as Operation,
    Variable as Variable,
)
from tiered.compat.ppq.formatting import (
    GraphDecomposer as GraphDecomposer,
    GraphFormatter as GraphFormatter,
    GraphMerge as GraphMerge,
    GraphMerger as GraphMerger,
    GraphReplacer as GraphReplacer,
)
from tiered.compat.ppq.graph import BaseGraph as BaseGraph
from tiered.compat.ppq.opsets import Opset as Opset, OpSocket as OpSocket
from tiered.compat.ppq.searching import (
    GraphPattern as GraphPattern,
    OperationSet as OperationSet,
    Path as Path,
    PatternTree as PatternTree,
    SearchableGraph as SearchableGraph,
    TypeExpr as TypeExpr,
)
from tiered.graph import DataType as DataType

__all__: list[str]
