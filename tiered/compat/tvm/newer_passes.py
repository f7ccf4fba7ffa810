"""Constructors of the passes of TVM's last versions that are several passes or options here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import tiered
from tiered.context import PassContext
from tiered.extensions.partition.supports import COMPOSITES
from tiered.graph import Model
from tiered.passes import Pass
from tiered.pipeline.named_passes import option_names
from tiered.support.amounts import counted
from tiered.support.errors import UsageError, did_you_mean

_FUSED: Final = "tiered.fused"
_MIXED: Final = {"float16": "float_to_half", "bfloat16": "float_to_bfloat16"}


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> Pass:
    """Return `float_to_half` or `float_to_bfloat16`.

    Args:
        mixed_precision_type: float16 or bfloat16.
        missing_op_mode: 1 or 2; operators that have no such kernel stay float, as in TVM.

    Raises:
        UsageError: another type, or a mode in which such operators are errors.
    """
    if mixed_precision_type not in _MIXED:
        hint = did_you_mean(mixed_precision_type, _MIXED)
        known = " or ".join(_MIXED)
        raise UsageError(f"ToMixedPrecision takes {known}, not {mixed_precision_type!r}{hint}")
    if missing_op_mode not in (1, 2):
        raise UsageError(
            f"ToMixedPrecision: missing_op_mode={missing_op_mode!r} has no equivalent: operators "
            "without such a kernel stay float (1, 2)"
        )
    return tiered.get_pass(_MIXED[mixed_precision_type])


def FakeQuantizationToInteger(
    hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Iterable[str] | None = None
) -> Pass:
    """Return a pipeline of `fuse_qdq_into_*`, of level 3: operators compute on integers.

    Args:
        hard_fail: must be False: what has no integer operator stays as it is.
        use_qat: accepted, and without effect: constants are folded into integers in any case.
        optional_qnn_ops: must be empty: ONNX has no such operators.

    Raises:
        UsageError: an argument that has no equivalent.
    """
    if hard_fail or optional_qnn_ops:
        raise UsageError(
            "FakeQuantizationToInteger: hard_fail and optional_qnn_ops have no equivalent: what "
            "has no integer operator stays between its Q/DQ"
        )

    @tiered.module_pass(opt_level=3, analysis=True, name="check_quantization_form")
    def check(model: Model, ctx: PassContext) -> None:
        if ctx.backend.quantization_form != "operators":
            raise UsageError(
                f"the backend {ctx.backend.name} wants no quantised operators: name one that "
                "does, such as tvm.target.Target('llvm')"
            )

    return tiered.Sequential([check, "fuse_qdq_into_*"], name="FakeQuantizationToInteger")


def PlanDevices(config: Any = None) -> Pass:
    """Return `rewrite_annotated_ops`: nodes between nodes of one device are on it too.

    Args:
        config: accepted, and without effect: devices are those of `on_device`.
    """
    return tiered.get_pass("rewrite_annotated_ops", fallback_device="cpu", propagate=True)


def DefuseOps() -> Pass:
    """Return a pass that undoes `fuse_ops`: its functions are inlined."""
    return tiered.get_pass("inline", domains=(_FUSED,))


def InlineComposites(target: str) -> Pass:
    """Return a pass that inlines the composites of `MergeComposite`.

    Args:
        target: accepted, and without effect: those of all targets are inlined.
    """
    return tiered.get_pass("inline", domains=(COMPOSITES,))


def FirstOrderGradient() -> Pass:
    """Return `gradient`, of the sum of the output with respect to all float inputs."""
    return tiered.get_pass("gradient", higher_order=False, seed="ones")


_GROWTH: Final = "1GB"
"""How much a model may grow by constants; TVM has no limit."""


def FoldConstant(*values: Any, fold_qnn: bool = False, **options: Any) -> Pass:
    """Return `fold_constant`, which may let the model grow by 1 GB: TVM has no limit.

    Args:
        values: the options of the pass by place; a first bool is `fold_qnn`.
        fold_qnn: accepted, and without effect: QuantizeLinear of constants is folded by
            `fold_quantize`, and DequantizeLinear of weights stays.
        options: options of the pass.

    Raises:
        UsageError: there are more values than options, or two for one option.
    """
    given = values[1:] if values and isinstance(values[0], bool) else values
    pass_ = tiered.get_pass("fold_constant")
    names = option_names(pass_)
    if len(given) > len(names):
        raise UsageError(f"FoldConstant takes {counted(len(names), 'option')}, not {len(given)}")
    named = dict(zip(names, given, strict=False))
    if twice := named.keys() & options.keys():
        raise UsageError(f"FoldConstant: {min(twice)!r} is given twice")
    return pass_.with_options(**{"max_growth": _GROWTH, **named, **options})


def Conv2dToSparse(
    weight_name: Iterable[str],
    weight_shape: Iterable[Iterable[int]] = (),
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> Pass:
    """Return `dense_to_sparse` of the weights of convolutions.

    Args:
        weight_name: the names of the weights.
        weight_shape, layout, kernel_size: accepted, and without effect: ONNX stores coordinates.

    Raises:
        UsageError: `weight_name` is one string.
    """
    names = listed("weight_name", weight_name)
    return tiered.get_pass("dense_to_sparse", tensors=names, threshold=1.0)


def listed(argument: str, names: Iterable[str]) -> list[str]:
    """Return a list of names.

    Raises:
        UsageError: it is one string.
    """
    if isinstance(names, str):
        raise UsageError(f"{argument} is a list of names, not the string {names!r}")
    return list(names)
