from tiered.analysis.batching.another_size import rebatch as rebatch
from tiered.analysis.layout.convert import place_transposes as place_transposes
from tiered.analysis.layout.nhwc import IMAGE_OPERATORS as IMAGE_OPERATORS
from tiered.analysis.layout.propagation import Permuted as Permuted, Propagation as Propagation
from tiered.analysis.layout.rules import layout_rule as layout_rule
from tiered.analysis.layout.sizes import LayoutSizes as LayoutSizes
from tiered.analysis.layout.transpose_report import (
    LayoutReport as LayoutReport,
    layout_report as layout_report,
)
from tiered.analysis.legalization.search import legalize_nodes as legalize_nodes
from tiered.analysis.legalization.sources import legalize_by as legalize_by
from tiered.analysis.legalization.substitution import substitute as substitute
from tiered.context import PassContext as PassContext
from tiered.extensions.debug.all_values import run as run
from tiered.extensions.debug.as_loaded import (
    compare_with_loaded as compare_with_loaded,
    layers_against_loaded as layers_against_loaded,
)
from tiered.extensions.gradients import (
    Expr as Expr,
    Step as Step,
    add_gradients as add_gradients,
    are_outputs_already as are_outputs_already,
    float_values as float_values,
    gradient_rule as gradient_rule,
)
from tiered.extensions.measurement.bench import bench as bench
from tiered.extensions.measurement.profile.run import profile as profile
from tiered.extensions.memory.checkpoints import recompute_forward as recompute_forward
from tiered.extensions.memory.copies import METADATA_SINCE as METADATA_SINCE
from tiered.extensions.memory.plan import memory_plan as memory_plan, peak_change as peak_change
from tiered.extensions.memory.recompute import recompute_values as recompute_values
from tiered.extensions.memory.schedule import schedule_model as schedule_model
from tiered.extensions.memory.splitting.budget import split_model as split_model
from tiered.extensions.packing.transform import pack_rows as pack_rows
from tiered.extensions.partition import (
    BackendSupport as BackendSupport,
    cut_out_regions as cut_out_regions,
    mark_devices as mark_devices,
    mark_overlap as mark_overlap,
    mark_remaps as mark_remaps,
    mark_targets as mark_targets,
    merge_composites as merge_composites,
    merge_regions as merge_regions,
    pattern_table as pattern_table,
)
from tiered.extensions.preparation.doctor import Diagnosis as Diagnosis, doctor as doctor
from tiered.extensions.preparation.prepare import prepare as prepare
from tiered.extensions.preparation.result import Prepared as Prepared
from tiered.extensions.tuning.tune import tune as tune
from tiered.graph import (
    ELEMENTWISE as ELEMENTWISE,
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
    loop_turns as loop_turns,
    non_negative_axes as non_negative_axes,
    register_type_rule as register_type_rule,
    same_axes as same_axes,
    shape_rule as shape_rule,
    shape_source as shape_source,
    spatial_pads as spatial_pads,
)
from tiered.graph.intervals.analysis import (
    RangeAnalysis as RangeAnalysis,
    Ranges as Ranges,
    ranges as ranges,
)
from tiered.graph.intervals.integer_type import IntegerType as IntegerType
from tiered.graph.intervals.integers import (
    IntegerAnalysis as IntegerAnalysis,
    IntegerTypes as IntegerTypes,
    integer_types as integer_types,
)
from tiered.graph.intervals.interval import Interval as Interval
from tiered.numerics.precision.budget import budget_of as budget_of
from tiered.numerics.precision.few_bits.codes import FLOAT8 as FLOAT8
from tiered.numerics.precision.few_bits.exponents import Exponents as Exponents
from tiered.numerics.precision.few_bits.float8 import (
    Float8Settings as Float8Settings,
    quantize_to_float8 as quantize_to_float8,
)
from tiered.numerics.precision.few_bits.operands import Sampling as Sampling
from tiered.numerics.precision.few_bits.returning import OutputBudget as OutputBudget
from tiered.numerics.precision.few_bits.weights import (
    float8_format as float8_format,
    int4_format as int4_format,
    int8_format as int8_format,
    quantize_weights as quantize_weights,
)
from tiered.numerics.precision.integers import narrow_integers as narrow_integers
from tiered.numerics.precision.lower import (
    PrecisionRules as PrecisionRules,
    lower_precision as lower_precision,
)
from tiered.numerics.precision.measurement import measured_error as measured_error
from tiered.numerics.precision.mixed import mixed_precision as mixed_precision
from tiered.numerics.quantization.dynamic import quantize_dynamically as quantize_dynamically
from tiered.numerics.quantization.quantize import (
    QuantizationSettings as QuantizationSettings,
    quantize_model as quantize_model,
)
from tiered.passes import (
    NodeMapPass as NodeMapPass,
    Pass as Pass,
    PassBase as PassBase,
    PassInfo as PassInfo,
    function_pass as function_pass,
    get_pass as get_pass,
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
from tiered.passes.validity import check_result as check_result
from tiered.pipeline import (
    Fixpoint as Fixpoint,
    Sequential as Sequential,
    default_pipeline as default_pipeline,
    parse_pipeline as parse_pipeline,
    pipeline_for as pipeline_for,
)
from tiered.pipeline.compose.merge import has_merged as has_merged, merge as merge
from tiered.pipeline.compose.parts import extract as extract, split as split
from tiered.pipeline.instruments.onnx_text import model_text as model_text
from tiered.pipeline.instruments.overview import overview_text as overview_text
from tiered.pipeline.optimize import optimize as optimize, optimize_model as optimize_model
from tiered.pipeline.result import (
    OptimizeResult as OptimizeResult,
    OptimizeSummary as OptimizeSummary,
)
from tiered.rewriter import (
    COMMUTATIVE as COMMUTATIVE,
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
from tiered.runtime import (
    FEW_BITS as FEW_BITS,
    QUANTIZED as QUANTIZED,
    Numerics as Numerics,
    divides_safely as divides_safely,
    fold_constants as fold_constants,
    freed_bytes as freed_bytes,
    trip_count_of as trip_count_of,
)
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
from tiered.support.options import Size as Size, size_in_bytes as size_in_bytes
from tiered.targets import (
    Backend as Backend,
    backend_names as backend_names,
    get_backend as get_backend,
    note_float_weights as note_float_weights,
    noting_lost_kernels as noting_lost_kernels,
    register_backend as register_backend,
)
from tiered.targets.pipeline_edits import PipelineEdit as PipelineEdit

__all__: list[str]
__version__: str
