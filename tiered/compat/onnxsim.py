"""`simplify` with the arguments and the results of onnxsim's.

model, check_ok = simplify(onnx.load("model.onnx"))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import onnx

import tiered
from tiered.extensions.debug import compare_models
from tiered.graph import Model
from tiered.graph.io.save import Storage
from tiered.runtime import make_inputs
from tiered.support.errors import UsageError, VerificationError
from tiered.support.typed_options import size_in_bytes

__all__ = ["simplify"]

Shapes = Mapping[str | None, Sequence[int]]
Rewriter = Callable[[onnx.ModelProto], "onnx.ModelProto | bool | None"]

_WITHOUT_OPTIMIZERS = "infer_shapes,fold_constant,eliminate_deadend,eliminate_unused_initializer"


def simplify(
    model: str | onnx.ModelProto,
    check_n: int = 0,
    perform_optimization: bool = True,
    skip_fuse_bn: bool = False,
    overwrite_input_shapes: Shapes | None = None,
    test_input_shapes: Shapes | None = None,
    skipped_optimizers: Sequence[str] | None = None,
    skip_constant_folding: bool = False,
    skip_shape_inference: bool = False,
    input_data: Mapping[str, Any] | None = None,
    dynamic_input_shape: bool = False,
    custom_lib: str | None = None,
    include_subgraph: bool = False,
    unused_output: Sequence[str] | None = None,
    tensor_size_threshold: str = "1.5GB",
    mutable_initializer: bool = False,
    *,
    initializers_as_constants: bool = True,
    inline_functions: bool = False,
    import_custom_schemas: bool = True,
    input_shapes: Shapes | None = None,
    target_opset_version: int | Literal["latest"] | None = None,
    extra_optimizers: Sequence[str] | None = None,
    custom_rewriter: Rewriter | None = None,
    function_rewrite_rules: Sequence[tuple[onnx.FunctionProto, onnx.FunctionProto]] | None = None,
    check_rtol: float = 1e-4,
    check_atol: float = 1e-5,
    input_fill: str = "random",
    providers: Sequence[Any] | None = None,
    gemm_fusion_backend: str = "ort_cpu",
    profile: str | None = None,
    ort_profile: str | None = None,
    merge_ort_profile: bool = False,
    output_path: str | None = None,
    external_data_threshold: str = "100MB",
    range_opt: bool = False,
    certify: bool | None = None,
    check_hazards: bool = False,
    check_gradients: bool = False,
    gradient_precision: str = "fp32",
) -> tuple[onnx.ModelProto, bool]:
    """Return the model as `tiered.optimize` at level 3 makes it, and whether the check passed.

    Args:
        model: a file or a ModelProto, which stays as it is.
        check_n: 0 for no check; else both models run on generated inputs, or on `input_data`.
        perform_optimization: if not, only constants are folded.
        skip_fuse_bn: keep BatchNormalizations.
        overwrite_input_shapes: dims by input; None names the only input.
        test_input_shapes: dims of the inputs of the check.
        skipped_optimizers: passes that must not run, by any of their names.
        skip_constant_folding: fold nothing.
        skip_shape_inference: write no inferred types into the result.
        input_data: the inputs of the check.
        dynamic_input_shape: without effect: dynamic dims stay dynamic.
        custom_lib, profile, ort_profile, merge_ort_profile, range_opt, certify, check_hazards,
            check_gradients: refused if set; the error says what to use instead.
        include_subgraph: without effect: bodies are always optimised.
        unused_output: outputs to remove first.
        tensor_size_threshold: the size of the largest constant that is folded, "1.5KB".
        mutable_initializer: keep inputs with a default as inputs.
        initializers_as_constants: if not, weights count as inputs, and nothing is folded into them.
        inline_functions, import_custom_schemas, gemm_fusion_backend, gradient_precision: without
            effect: functions are always inlined, schemas of onnx are always known, and Gemm is made
            of matrices of any float dtype.
        input_shapes: the old name of `overwrite_input_shapes`.
        target_opset_version: the opset to convert to first; "latest" is the newest of onnx.
        extra_optimizers: passes that run whatever their level.
        custom_rewriter: called with the model first; it returns another one, or None or False.
        function_rewrite_rules: pairs of a pattern and its replacement.
        check_rtol, check_atol: the tolerance of the check.
        input_fill: the elements of generated inputs: random, ones, zeros or arange.
        providers: CPUExecutionProvider only.
        output_path: a file to write as well.
        external_data_threshold: `output_path` has its weights beside it from this size on.

    Raises:
        UsageError: an unknown name, or an argument that is refused.
        ValueError: two rewriters.
        ModelError: the model cannot be read.
        OpsetError: a node has no form at `target_opset_version`.
    """
    refused = {
        "custom_lib": (custom_lib, "tiered.verify.register_operator adds a custom operator"),
        "profile": (profile, "tiered.Trace and --trace time the passes"),
        "ort_profile": (ort_profile, "onnxruntime's SessionOptions have enable_profiling"),
        "merge_ort_profile": (merge_ort_profile, "tiered.Trace times the passes"),
        "range_opt": (range_opt, "no pass depends on ranges that the model does not show"),
        "certify": (certify, "check_n compares the outputs"),
        "check_hazards": (check_hazards, "check_n compares special values too"),
        "check_gradients": (check_gradients, "check_n compares the outputs"),
    }
    for name, (given, instead) in refused.items():
        if given:
            raise UsageError(f"simplify has no {name}: {instead}")
    if any(str(each) != "CPUExecutionProvider" for each in providers or ()):
        raise UsageError(f"simplify folds on CPUExecutionProvider only, not on {providers}")
    if input_fill not in _FILLS:
        raise UsageError(f"input_fill takes one of {', '.join(_FILLS)}, not {input_fill!r}")
    if custom_rewriter is not None and function_rewrite_rules:
        raise ValueError("simplify takes a custom_rewriter or function_rewrite_rules, not both")
    view = Model.load(model) if isinstance(model, str | os.PathLike) else Model.from_proto(model)
    view = _rewritten(view, custom_rewriter, function_rewrite_rules or ())
    if target_opset_version is not None:
        if not isinstance(target_opset_version, int) and target_opset_version != "latest":
            raise UsageError(
                f'target_opset_version is a number or "latest", not {target_opset_version!r}'
            )
        newest = onnx.defs.onnx_opset_version()
        view.convert_opset(newest if target_opset_version == "latest" else target_opset_version)
    for name in unused_output or ():
        view.main.remove_output(_output(view, name))
    shapes = _named(view, overwrite_input_shapes or input_shapes)
    before = view.to_proto() if check_n else None
    disabled = list(skipped_optimizers or ())
    if skip_fuse_bn:
        disabled += ["fuse_bn_into_conv", "fuse_bn_into_gemm"]
    if skip_constant_folding:
        disabled += ["fold_constant", "trace_folding"]
    edits = []
    if not skip_constant_folding:
        limit = size_in_bytes(tensor_size_threshold, view.nbytes)
        edits.append(f"set fold_constant{{max_tensor_size={limit}}}")
    variable = set() if initializers_as_constants else _as_inputs(view)
    frees = perform_optimization and not (mutable_initializer or variable)
    required = ["remove_initializer_from_input"] if frees else []
    made = tiered.optimize_model(
        view,
        opt_level=3,
        passes=None if perform_optimization else _WITHOUT_OPTIMIZERS,
        disabled=disabled,
        required=[*required, *(extra_optimizers or ())],
        edits=edits,
        input_shapes=shapes,
    ).model
    weights = made.main.initializers
    made.main.remove_inputs([weight for weight in weights if weight.name in variable])
    proto = made.to_proto()
    if output_path is not None:
        limit = size_in_bytes(external_data_threshold, made.nbytes)
        storage = Storage(0) if made.nbytes >= limit else None
        made.save(output_path, annotate=not skip_shape_inference, storage=storage)
    is_right = before is None or _agree(
        before,
        proto,
        {**(shapes or {}), **(_named(view, test_input_shapes) or {})},
        input_data,
        (check_rtol, check_atol),
        _FILLS[input_fill],
    )
    return (proto if skip_shape_inference else made.to_proto(annotate=True)), is_right


def _rewritten(
    model: Model,
    rewriter: Rewriter | None,
    rules: Sequence[tuple[onnx.FunctionProto, onnx.FunctionProto]],
) -> Model:
    """Return the model after the user's own rewrites."""
    if rewriter is not None:
        proto = model.to_proto()
        returned = rewriter(proto)
        found = returned if isinstance(returned, onnx.ModelProto) else proto
        return model if returned is False else Model.from_proto(found)
    for pattern, replacement in rules:
        tiered.replace_pattern(model, pattern, replacement)
    return model


def _as_inputs(model: Model) -> set[str]:
    """Make inputs of all initializers, and return the names of those that were none."""
    values = [value for value in model.main.initializers if not value.is_graph_input]
    model.main.mark_inputs(values)
    return {value.name for value in values}


_FILLS: Final[Mapping[str, Callable[[Any], Any] | None]] = {
    "random": None,
    "ones": np.ones_like,
    "zeros": np.zeros_like,
    "arange": lambda made: np.arange(made.size).reshape(made.shape).astype(made.dtype),
}


def _output(model: Model, name: str) -> Any:
    for value in model.main.outputs:
        if value.name == name:
            return value
    names = ", ".join(value.name for value in model.main.outputs)
    raise UsageError(f"the model has no output {name!r}; it has {names}")


def _named(model: Model, shapes: Shapes | None) -> dict[str, list[int | str]] | None:
    """Return dims by the name of the input; None names the only input."""
    if not shapes:
        return None
    inputs = [value.name for value in model.main.inputs if not value.is_overridable]
    if None in shapes and len(inputs) != 1:
        raise UsageError(f"a shape without a name needs one input; the model has {inputs}")
    return {inputs[0] if name is None else name: [*dims] for name, dims in shapes.items()}


def _agree(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    shapes: Mapping[str, Sequence[int | str]],
    inputs: Mapping[str, Any] | None,
    tolerance: tuple[float, float],
    fill: Callable[[Any], Any] | None,
) -> bool:
    """Return whether two models have the same outputs within float tolerance."""
    if shapes:
        fixed = tiered.get_pass("const_input_shape", shape={k: [*v] for k, v in shapes.items()})
        before, after = fixed.apply(before), fixed.apply(after)
    if fill is not None and not inputs:
        inputs = {name: fill(made) for name, made in make_inputs(before).feeds.items()}
    given, (rtol, atol) = [inputs] if inputs else (), tolerance
    try:
        return compare_models(before, after, inputs=given, rtol=rtol, atol=atol).ok
    except VerificationError:
        return False
