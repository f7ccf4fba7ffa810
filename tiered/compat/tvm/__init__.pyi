from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tiered.compat.tvm.constructors import (
    AnnotateTarget as AnnotateTarget,
    ChangeBatch as ChangeBatch,
    CombineParallelDense as CombineParallelDense,
    DeadCodeElimination as DeadCodeElimination,
    DenseToSparse as DenseToSparse,
    EliminateCommonSubexpr as EliminateCommonSubexpr,
    EtaExpand as EtaExpand,
    FuseOps as FuseOps,
    Legalize as Legalize,
    MergeComposite as MergeComposite,
    PartialEvaluate as PartialEvaluate,
    PartitionGraph as PartitionGraph,
    PrintIR as PrintIR,
    RemoveUnusedFunctions as RemoveUnusedFunctions,
    RewriteAnnotatedOps as RewriteAnnotatedOps,
    SimplifyFCTranspose as SimplifyFCTranspose,
    gradient as gradient,
    search_fc_transpose as search_fc_transpose,
)
from tiered.compat.tvm.contexts import (
    PassContext as PassContext,
    PassInfo as PassInfo,
    Sequential as Sequential,
    build_config as build_config,
)
from tiered.compat.tvm.expressions.expr import (
    Call as Call,
    Constant as Constant,
    Expr as Expr,
    Function as Function,
    Op as Op,
    TensorType as TensorType,
    Tuple as Tuple,
    TupleGetItem as TupleGetItem,
    Var as Var,
    const as const,
    var as var,
)
from tiered.compat.tvm.expressions.functors import (
    ExprFunctor as ExprFunctor,
    ExprMutator as ExprMutator,
    ExprVisitor as ExprVisitor,
    all_vars as all_vars,
    free_vars as free_vars,
    post_order_visit as post_order_visit,
)
from tiered.compat.tvm.function_passes import (
    function_pass as function_pass,
    module_pass as module_pass,
)
from tiered.compat.tvm.instruments import (
    DumpIR as DumpIR,
    PassInstrument as PassInstrument,
    PassPrintingInstrument as PassPrintingInstrument,
    PassTimingInstrument as PassTimingInstrument,
    PrintAfterAll as PrintAfterAll,
    PrintBeforeAll as PrintBeforeAll,
    pass_instrument as pass_instrument,
)
from tiered.compat.tvm.layouts import ConvertLayout as ConvertLayout
from tiered.compat.tvm.newer_passes import (
    Conv2dToSparse as Conv2dToSparse,
    DefuseOps as DefuseOps,
    FakeQuantizationToInteger as FakeQuantizationToInteger,
    FirstOrderGradient as FirstOrderGradient,
    FoldConstant as FoldConstant,
    InlineComposites as InlineComposites,
    PlanDevices as PlanDevices,
    ToMixedPrecision as ToMixedPrecision,
)
from tiered.compat.tvm.op_attributes import register_op_attr as register_op_attr
from tiered.compat.tvm.pattern_tables import (
    get_pattern_table as get_pattern_table,
    register_pattern_table as register_pattern_table,
)
from tiered.compat.tvm.running.built import (
    Built as Built,
    build as build,
)
from tiered.compat.tvm.running.devices import (
    Device as Device,
    cpu as cpu,
    cuda as cuda,
    device as device,
    gpu as gpu,
)
from tiered.compat.tvm.running.executors import (
    Executor as Executor,
    create_executor as create_executor,
    optimize as optimize,
)
from tiered.compat.tvm.running.modules import (
    GlobalVar as GlobalVar,
    IRModule as IRModule,
    NotEqualError as NotEqualError,
    assert_structural_equal as assert_structural_equal,
    structural_equal as structural_equal,
)
from tiered.compat.tvm.sparse_dense import process_params as process_params
from tiered.compat.tvm.target import Target as Target
from tiered.passes import Pass as Pass
from tiered.passes.kinds.calling_pass import (
    FunctionPass as FunctionPass,
    ModulePass as ModulePass,
)

OPT_PASS_LEVEL: Mapping[str, int]
build_module: Any
expr: Any
expr_functor: Any
ir: Any
instrument: Any
relay: Any
transform: Any
annotation: ModuleType
contrib: ModuleType
data_dep_optimization: ModuleType
dataflow_pattern: ModuleType
frontend: ModuleType
graph_executor: ModuleType
nd: ModuleType
op: ModuleType
sparse_dense: ModuleType
target: ModuleType

def __getattr__(name: str) -> Callable[..., Any]: ...

__all__: list[str]
