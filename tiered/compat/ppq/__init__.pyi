from tiered.compat.ppq.attributes import OperationAttributes as OperationAttributes
from tiered.compat.ppq.base_graph import BaseGraph as BaseGraph
from tiered.compat.ppq.configs.operations import (
    OperationQuantizationConfig as OperationQuantizationConfig,
)
from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy as QuantizationPolicy,
    QuantizationProperty as QuantizationProperty,
    RoundingPolicy as RoundingPolicy,
)
from tiered.compat.ppq.configs.states import QuantizationStates as QuantizationStates
from tiered.compat.ppq.configs.tensor_configs import (
    TensorQuantizationConfig as TensorQuantizationConfig,
)
from tiered.compat.ppq.elements import (
    PLATFORM as PLATFORM,
    Operation as Operation,
    QuantableOperation as QuantableOperation,
    QuantableVariable as QuantableVariable,
    Variable as Variable,
)
from tiered.compat.ppq.executing import TorchExecutor as TorchExecutor
from tiered.compat.ppq.formatting import (
    GraphDecomposer as GraphDecomposer,
    GraphFormatter as GraphFormatter,
    GraphMerge as GraphMerge,
    GraphMerger as GraphMerger,
    GraphReplacer as GraphReplacer,
    format_graph as format_graph,
)
from tiered.compat.ppq.graph_files import (
    export_ppq_graph as export_ppq_graph,
    load_onnx_graph as load_onnx_graph,
)
from tiered.compat.ppq.opsets import (
    Opset as Opset,
    OpSocker as OpSocker,
    OpSocket as OpSocket,
)
from tiered.compat.ppq.quantizing import (
    BaseQuantFunction as BaseQuantFunction,
    PPQLinearQuantFunction as PPQLinearQuantFunction,
    QuantableGraph as QuantableGraph,
    TargetPlatform as TargetPlatform,
    create_default_quant_config as create_default_quant_config,
)
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
