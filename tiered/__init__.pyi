from tiered.backends import (
    Backend as Backend,
)
from tiered.backends import (
    backend_names as backend_names,
)
from tiered.backends import (
    get_backend as get_backend,
)
from tiered.backends import (
    register_backend as register_backend,
)
from tiered.backends.pipeline_edits import PipelineEdit as PipelineEdit
from tiered.context import PassContext as PassContext
from tiered.debug.as_loaded import compare_with_loaded as compare_with_loaded
from tiered.debug.as_loaded import layers_against_loaded as layers_against_loaded
from tiered.errors import (
    ModelError as ModelError,
)
from tiered.errors import (
    OperatorError as OperatorError,
)
from tiered.errors import (
    PassError as PassError,
)
from tiered.errors import (
    PostconditionError as PostconditionError,
)
from tiered.errors import (
    PreconditionError as PreconditionError,
)
from tiered.errors import (
    SearchLimitError as SearchLimitError,
)
from tiered.errors import (
    ShapeError as ShapeError,
)
from tiered.errors import (
    TargetError as TargetError,
)
from tiered.errors import (
    TieredError as TieredError,
)
from tiered.errors import (
    UsageError as UsageError,
)
from tiered.errors import (
    VerificationError as VerificationError,
)
from tiered.graph import (
    ELEMENTWISE as ELEMENTWISE,
)
from tiered.graph import (
    Constant as Constant,
)
from tiered.graph import (
    DataType as DataType,
)
from tiered.graph import (
    Elements as Elements,
)
from tiered.graph import (
    Function as Function,
)
from tiered.graph import (
    Graph as Graph,
)
from tiered.graph import (
    Model as Model,
)
from tiered.graph import (
    Node as Node,
)
from tiered.graph import (
    Tensor as Tensor,
)
from tiered.graph import (
    TensorType as TensorType,
)
from tiered.graph import (
    Value as Value,
)
from tiered.graph import (
    ValueType as ValueType,
)
from tiered.graph import (
    broadcasts_into as broadcasts_into,
)
from tiered.graph import (
    is_deterministic as is_deterministic,
)
from tiered.graph import (
    is_shape_of as is_shape_of,
)
from tiered.graph import (
    loop_turns as loop_turns,
)
from tiered.graph import (
    non_negative_axes as non_negative_axes,
)
from tiered.graph import (
    register_type_rule as register_type_rule,
)
from tiered.graph import (
    same_axes as same_axes,
)
from tiered.graph import (
    shape_rule as shape_rule,
)
from tiered.graph import (
    shape_source as shape_source,
)
from tiered.graph import (
    spatial_pads as spatial_pads,
)
from tiered.instruments.hooks import Instrument as Instrument
from tiered.instruments.onnx_text import model_text as model_text
from tiered.instruments.overview import overview_text as overview_text
from tiered.layout.convert import place_transposes as place_transposes
from tiered.layout.cost import LayoutSizes as LayoutSizes
from tiered.layout.nhwc import IMAGE_OPERATORS as IMAGE_OPERATORS
from tiered.layout.transpose_report import LayoutReport as LayoutReport
from tiered.layout.transpose_report import layout_report as layout_report
from tiered.legalization.search import legalize_nodes as legalize_nodes
from tiered.passes import (
    NodeMapPass as NodeMapPass,
)
from tiered.passes import (
    Pass as Pass,
)
from tiered.passes import (
    PassBase as PassBase,
)
from tiered.passes import (
    PassInfo as PassInfo,
)
from tiered.passes import (
    function_pass as function_pass,
)
from tiered.passes import (
    get_pass as get_pass,
)
from tiered.passes import (
    get_registered_passes as get_registered_passes,
)
from tiered.passes import (
    module_pass as module_pass,
)
from tiered.passes import (
    pass_names as pass_names,
)
from tiered.passes import (
    proto_pass as proto_pass,
)
from tiered.passes import (
    register as register,
)
from tiered.passes import (
    rewrite as rewrite,
)
from tiered.passes.pass_info import Decision as Decision
from tiered.passes.pass_info import PassResult as PassResult
from tiered.passes.report import Remark as Remark
from tiered.passes.validity import check_result as check_result
from tiered.pipeline import (
    Fixpoint as Fixpoint,
)
from tiered.pipeline import (
    Sequential as Sequential,
)
from tiered.pipeline import (
    default_pipeline as default_pipeline,
)
from tiered.pipeline import (
    parse_pipeline as parse_pipeline,
)
from tiered.pipeline import (
    pipeline_for as pipeline_for,
)
from tiered.pipeline.optimize import optimize as optimize
from tiered.pipeline.optimize import optimize_model as optimize_model
from tiered.pipeline.result import OptimizeResult as OptimizeResult
from tiered.pipeline.result import OptimizeSummary as OptimizeSummary
from tiered.rewriter import (
    COMMUTATIVE as COMMUTATIVE,
)
from tiered.rewriter import (
    Match as Match,
)
from tiered.rewriter import (
    Pattern as Pattern,
)
from tiered.rewriter import (
    ReplacedPattern as ReplacedPattern,
)
from tiered.rewriter import (
    Skip as Skip,
)
from tiered.rewriter import (
    SubgraphMatcher as SubgraphMatcher,
)
from tiered.rewriter import (
    chain as chain,
)
from tiered.rewriter import (
    const as const,
)
from tiered.rewriter import (
    find_matches as find_matches,
)
from tiered.rewriter import (
    op as op,
)
from tiered.rewriter import (
    opt as opt,
)
from tiered.rewriter import (
    replace_pattern as replace_pattern,
)
from tiered.rewriter import (
    rest as rest,
)
from tiered.rewriter import (
    var as var,
)
from tiered.runtime import (
    QUANTISED as QUANTISED,
)
from tiered.runtime import (
    Numerics as Numerics,
)
from tiered.runtime import (
    divides_safely as divides_safely,
)
from tiered.runtime import (
    fold_constants as fold_constants,
)
from tiered.runtime import (
    freed_bytes as freed_bytes,
)
from tiered.support.options import Size as Size
from tiered.support.options import size_in_bytes as size_in_bytes

__all__: list[str]
__version__: str
