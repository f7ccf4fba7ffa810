from tiered.analysis.layout.axis_propagation import AxisPropagation as AxisPropagation
from tiered.analysis.layout.rules import layout_rule as layout_rule
from tiered.analysis.layout.transpose_report import (
    LayoutReport as LayoutReport,
    layout_report as layout_report,
)
from tiered.analysis.legalization.legalization_sources import legalize_by as legalize_by
from tiered.analysis.legalization.substitution import substitute as substitute
from tiered.context import PassContext as PassContext
from tiered.extensions.debug.all_values import run as run
from tiered.extensions.differences.model_diff import diff as diff
from tiered.extensions.gradients import (
    Expr as Expr,
    Step as Step,
    add_gradients as add_gradients,
    gradient_rule as gradient_rule,
)
from tiered.extensions.measurement.latency_bench import bench as bench
from tiered.extensions.measurement.profile.profiling import profile as profile
from tiered.extensions.memory.liveness import memory_plan as memory_plan
from tiered.extensions.preparation.advice import doctor as doctor
from tiered.extensions.preparation.preparation_result import Prepared as Prepared
from tiered.extensions.preparation.preparing import prepare as prepare
from tiered.extensions.tuning.tuning import tune as tune
from tiered.graph import (
    Constant as Constant,
    DataType as DataType,
    Elements as Elements,
    Function as Function,
    Graph as Graph,
    InterfaceMap as InterfaceMap,
    Model as Model,
    Node as Node,
    Tensor as Tensor,
    TensorType as TensorType,
    Value as Value,
    ValueType as ValueType,
    broadcasts_into as broadcasts_into,
    is_deterministic as is_deterministic,
    is_shape_of as is_shape_of,
    non_negative_axes as non_negative_axes,
    register_type_rule as register_type_rule,
    same_axes as same_axes,
    shape_rule as shape_rule,
)
from tiered.graph.intervals.integer_analysis import (
    IntegerAnalysis as IntegerAnalysis,
    integer_types as integer_types,
)
from tiered.graph.intervals.integer_type import IntegerType as IntegerType
from tiered.graph.intervals.interval import Interval as Interval
from tiered.graph.intervals.range_analysis import (
    RangeAnalysis as RangeAnalysis,
    Ranges as Ranges,
    ranges as ranges,
)
from tiered.numerics.quantization.settings import QuantizationSettings as QuantizationSettings
from tiered.numerics.quantization.static_quantization import quantize_model as quantize_model
from tiered.passes import (
    NodeMapPass as NodeMapPass,
    Pass as Pass,
    PassBase as PassBase,
    PassInfo as PassInfo,
    function_pass as function_pass,
    get_registered_passes as get_registered_passes,
    module_pass as module_pass,
    pass_names as pass_names,
    proto_pass as proto_pass,
    register as register,
    rewrite as rewrite,
)
from tiered.passes.interface.hooks import Instrument as Instrument
from tiered.passes.interface.pass_info import Decision as Decision, PassResult as PassResult
from tiered.passes.interface.report import Remark as Remark
from tiered.pipeline import (
    Fixpoint as Fixpoint,
    Sequential as Sequential,
    default_pipeline as default_pipeline,
    get_pass as get_pass,
    parse_pipeline as parse_pipeline,
    pipeline_for as pipeline_for,
)
from tiered.pipeline.compose.extraction import extract as extract, split as split
from tiered.pipeline.compose.merging import merge as merge
from tiered.pipeline.optimize import optimize as optimize, optimize_model as optimize_model
from tiered.pipeline.result import (
    OptimizeResult as OptimizeResult,
    OptimizeSummary as OptimizeSummary,
)
from tiered.rewriter import (
    Match as Match,
    Pattern as Pattern,
    ReplacedPattern as ReplacedPattern,
    Skip as Skip,
    SubgraphMatcher as SubgraphMatcher,
    Unable as Unable,
    chain as chain,
    const as const,
    find_matches as find_matches,
    op as op,
    opt as opt,
    replace_pattern as replace_pattern,
    rest as rest,
    var as var,
)
from tiered.runtime import QUANTIZED as QUANTIZED, Numerics as Numerics
from tiered.support.errors import (
    ModelError as ModelError,
    OperatorError as OperatorError,
    PassError as PassError,
    PostconditionError as PostconditionError,
    PreconditionError as PreconditionError,
    SearchLimitError as SearchLimitError,
    ShapeError as ShapeError,
    TargetError as TargetError,
    TieredError as TieredError,
    UsageError as UsageError,
    VerificationError as VerificationError,
)
from tiered.support.typed_options import Size as Size, size_in_bytes as size_in_bytes
from tiered.targets import (
    Backend as Backend,
    backend_names as backend_names,
    get_backend as get_backend,
    register_backend as register_backend,
)
from tiered.targets.pipeline_edits import PipelineEdit as PipelineEdit

__all__: list[str]
__version__: str
