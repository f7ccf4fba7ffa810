"""tiered: passes over ONNX models that people can trust.

The names below load on first use; `import tiered` loads neither onnx nor onnxruntime.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from tiered.loading import load_later

if TYPE_CHECKING:
    from tiered.backends import Backend, backend_names, get_backend, register_backend
    from tiered.context import PassContext
    from tiered.control.decision import Decision
    from tiered.control.hooks import Instrument
    from tiered.control.report import PassResult, Remark
    from tiered.edits import PipelineEdit
    from tiered.errors import (
        ModelError,
        PassError,
        PostconditionError,
        PreconditionError,
        SearchLimitError,
        ShapeError,
        TargetError,
        TieredError,
        UsageError,
        VerificationError,
    )
    from tiered.graph import (
        DataType,
        Elements,
        Function,
        Graph,
        Model,
        Node,
        Tensor,
        TensorType,
        Value,
        ValueType,
        broadcasts_into,
        is_deterministic,
        non_negative_axes,
        register_type_rule,
        same_axes,
    )
    from tiered.layout import LayoutReport, LayoutSizes, layout_report, place_transposes
    from tiered.options import Size, size_in_bytes
    from tiered.passes import (
        NodeMapPass,
        Pass,
        PassBase,
        PassInfo,
        function_pass,
        get_pass,
        get_registered_passes,
        module_pass,
        pass_names,
        proto_pass,
        register,
        rewrite,
    )
    from tiered.pipeline import (
        Fixpoint,
        Sequential,
        default_pipeline,
        parse_pipeline,
        pipeline_for,
    )
    from tiered.pipeline.optimize import optimize, optimize_model
    from tiered.pipeline.result import OptimizeResult
    from tiered.rewrite import (
        COMMUTATIVE,
        Match,
        Pattern,
        ReplacedPattern,
        Scale,
        Skip,
        SubgraphMatcher,
        chain,
        combine_branches,
        const,
        find_matches,
        only_reader,
        op,
        opt,
        parallel_branches,
        push_scale_back,
        push_scale_on,
        replace_pattern,
        rest,
        scaling_of,
        var,
        write_rescaled,
    )
    from tiered.runtime import (
        Numerics,
        divides_safely,
        evaluate,
        freed_bytes,
        work_of,
    )

__version__ = "0.1.0"

__all__ = [
    "COMMUTATIVE",
    "Backend",
    "DataType",
    "Decision",
    "Elements",
    "Fixpoint",
    "Function",
    "Graph",
    "Instrument",
    "LayoutReport",
    "LayoutSizes",
    "Match",
    "Model",
    "ModelError",
    "Node",
    "NodeMapPass",
    "Numerics",
    "OptimizeResult",
    "Pass",
    "PassBase",
    "PassContext",
    "PassError",
    "PassInfo",
    "PassResult",
    "Pattern",
    "PipelineEdit",
    "PostconditionError",
    "PreconditionError",
    "Remark",
    "ReplacedPattern",
    "Scale",
    "SearchLimitError",
    "Sequential",
    "ShapeError",
    "Size",
    "Skip",
    "SubgraphMatcher",
    "TargetError",
    "Tensor",
    "TensorType",
    "TieredError",
    "UsageError",
    "Value",
    "ValueType",
    "VerificationError",
    "__version__",
    "backend_names",
    "broadcasts_into",
    "chain",
    "combine_branches",
    "const",
    "default_pipeline",
    "divides_safely",
    "evaluate",
    "find_matches",
    "freed_bytes",
    "function_pass",
    "get_backend",
    "get_pass",
    "get_registered_passes",
    "is_deterministic",
    "layout_report",
    "module_pass",
    "non_negative_axes",
    "only_reader",
    "op",
    "opt",
    "optimize",
    "optimize_model",
    "parallel_branches",
    "parse_pipeline",
    "pass_names",
    "pipeline_for",
    "place_transposes",
    "proto_pass",
    "push_scale_back",
    "push_scale_on",
    "register",
    "register_backend",
    "register_type_rule",
    "replace_pattern",
    "rest",
    "rewrite",
    "same_axes",
    "scaling_of",
    "size_in_bytes",
    "var",
    "work_of",
    "write_rescaled",
]

_HOME = {
    "backends": ("Backend", "backend_names", "get_backend", "register_backend"),
    "context": ("PassContext",),
    "control.decision": ("Decision",),
    "control.hooks": ("Instrument",),
    "control.report": ("PassResult", "Remark"),
    "edits": ("PipelineEdit",),
    "errors": (
        "ModelError",
        "PassError",
        "PostconditionError",
        "PreconditionError",
        "SearchLimitError",
        "ShapeError",
        "TargetError",
        "TieredError",
        "UsageError",
        "VerificationError",
    ),
    "graph": (
        "DataType",
        "Elements",
        "Function",
        "Graph",
        "Model",
        "Node",
        "Tensor",
        "TensorType",
        "Value",
        "ValueType",
        "broadcasts_into",
        "is_deterministic",
        "non_negative_axes",
        "register_type_rule",
        "same_axes",
    ),
    "layout": ("LayoutReport", "LayoutSizes", "layout_report", "place_transposes"),
    "options": ("Size", "size_in_bytes"),
    "passes": (
        "NodeMapPass",
        "Pass",
        "PassBase",
        "PassInfo",
        "function_pass",
        "get_pass",
        "get_registered_passes",
        "module_pass",
        "pass_names",
        "proto_pass",
        "register",
        "rewrite",
    ),
    "pipeline": (
        "Fixpoint",
        "Sequential",
        "default_pipeline",
        "parse_pipeline",
        "pipeline_for",
    ),
    "pipeline.optimize": ("optimize", "optimize_model"),
    "pipeline.result": ("OptimizeResult",),
    "rewrite": (
        "COMMUTATIVE",
        "Match",
        "Pattern",
        "ReplacedPattern",
        "Scale",
        "Skip",
        "SubgraphMatcher",
        "chain",
        "combine_branches",
        "const",
        "find_matches",
        "only_reader",
        "op",
        "opt",
        "parallel_branches",
        "push_scale_back",
        "push_scale_on",
        "replace_pattern",
        "rest",
        "scaling_of",
        "var",
        "write_rescaled",
    ),
    "runtime": (
        "Numerics",
        "divides_safely",
        "evaluate",
        "freed_bytes",
        "work_of",
    ),
}


class _Package(ModuleType):
    """The package, where a public name is never hidden by a module of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        # Importing `tiered.rewrite` would put that module in the place of the decorator.
        if not isinstance(value, ModuleType) or name not in __all__:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name
    __getattr__, __dir__ = load_later(__name__, _HOME)
