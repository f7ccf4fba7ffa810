"""`simplify` with the arguments and the results of onnxsim's.

    model, check_ok = simplify(onnx.load("model.onnx"))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

import tiered
from tiered.debug import compare_models
from tiered.errors import UsageError, VerificationError
from tiered.graph import Model
from tiered.support.options import size_in_bytes

__all__ = ["simplify"]

Shapes = Mapping[str | None, Sequence[int]]

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
    tensor_size_threshold: str | None = None,
    mutable_initializer: bool = False,
    *,
    input_shapes: Shapes | None = None,
) -> tuple[onnx.ModelProto, bool]:
    """Return the model as `tiered.optimize` at level 3 makes it, and whether the check passed.

    Args:
        model: a file or a ModelProto, which stays as it is.
        check_n: 0 for no check; else both models run on made inputs, or on `input_data`.
        perform_optimization: if not, only constants are folded.
        skip_fuse_bn: keep BatchNormalizations.
        overwrite_input_shapes: dims by input; None names the only input.
        test_input_shapes: dims of the inputs of the check.
        skipped_optimizers: passes that must not run, by any of their names.
        skip_constant_folding: fold nothing.
        skip_shape_inference: write no inferred types into the result.
        input_data: the inputs of the check.
        dynamic_input_shape: without effect: dynamic dims stay dynamic.
        custom_lib: refused; see the error.
        include_subgraph: without effect: bodies are always optimised.
        unused_output: outputs to remove first.
        tensor_size_threshold: the size of the largest constant that is folded, "1.5KB".
        mutable_initializer: keep inputs with a default as inputs.
        input_shapes: the old name of `overwrite_input_shapes`.

    Raises:
        UsageError: an unknown name, or a `custom_lib`.
        ModelError: the model cannot be read.
    """
    if custom_lib is not None:
        raise UsageError(
            "simplify loads no libraries: tiered.verify.register_operator adds a custom operator, "
            "and other nodes of its domain are left as they are"
        )
    view = Model.load(model) if isinstance(model, str | os.PathLike) else Model.from_proto(model)
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
    if tensor_size_threshold is not None and not skip_constant_folding:
        limit = size_in_bytes(tensor_size_threshold, view.nbytes)
        edits.append(f"set fold_constant{{max_tensor_size={limit}}}")
    made = tiered.optimize_model(
        view,
        opt_level=3,
        passes=None if perform_optimization else _WITHOUT_OPTIMIZERS,
        disabled=disabled,
        required=() if mutable_initializer else ["remove_initializer_from_input"],
        edits=edits,
        input_shapes=shapes,
    ).model
    proto = made.to_proto()
    is_right = before is None or _agree(
        before, proto, {**(shapes or {}), **(_named(view, test_input_shapes) or {})}, input_data
    )
    return (proto if skip_shape_inference else made.to_proto(annotate=True)), is_right


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
) -> bool:
    """Return whether two models have the same outputs within float tolerance."""
    if shapes:
        fixed = tiered.get_pass("const_input_shape", shape={k: [*v] for k, v in shapes.items()})
        before, after = fixed.apply(before), fixed.apply(after)
    try:
        return compare_models(before, after, inputs=[inputs] if inputs else ()).ok
    except VerificationError:
        return False
