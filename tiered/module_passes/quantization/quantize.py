"""Conv, ConvTranspose, Gemm, MatMul  =>  the same between DequantizeLinear and QuantizeLinear"""

from typing import Literal

from tiered import Model, PassContext, QuantizationSettings, module_pass, quantize_model
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.quantization.watching import quantization_watcher
from tiered.support.numerics import FEW_BITS


@module_pass(
    opt_level=None,
    required=("inline", "eliminate_deadend", "fuse_bn_into_conv", "fold_constant"),
    followed_by=("eliminate_unused_initializer", "eliminate_deadend"),
    touches=("Conv", "ConvTranspose", "Gemm", "MatMul"),
    numerics=FEW_BITS,
)
def quantize(
    model: Model,
    ctx: PassContext,
    *,
    inputs: tuple[str, ...] = (),
    method: Literal["minmax", "percentile", "mse", "entropy", "auto"] = "mse",
    percentile: float = 99.999,
    samples: int = 8,
    seed: int = 0,
    budget: str = "",
    order: Literal["auto", "error", "sensitivity"] = "auto",
    reduce_range: bool | None = None,
    processor: Literal["here", "avx2", "vnni", "any"] = "here",
    rounding: Literal["samples", "nearest"] = "samples",
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
) -> None:
    """Quantise products by ranges that are measured on samples; a quantised model stays as it is.

    The backend decides dtypes, symmetry and which operators are quantised; without one, data is
    uint8 and weights are int8, with a scale for each output channel. For a backend without floats
    the model is legalized first, by approximations too, and every operator is quantised that it
    takes in integers.

    Args:
        inputs: files and folders of samples; without any, inputs are made.
        method: how the range of a tensor follows from its numbers; auto tries all, and takes the
            one with the least noise on samples that are held back.
        percentile: of the numbers that the method of that name keeps.
        samples: how many inputs are made.
        seed: of generated inputs.
        budget: how far outputs may move, as `sqnr>=20dB`; the worst products return to float.
        order: the worst by their own error, or by its effect on the outputs, by gradients; auto is
            the effect, and the error where an operator has no gradient.
        reduce_range: 7 bits for weights; by default as the backend needs.
        processor: where the result runs: on x86-64 without VNNI (avx2, any) pairs of weights are
            limited, so that their products do not saturate.
        rounding: of weights: samples lets the errors of each product cancel on its data; nearest
            is faster.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
    """
    watcher = quantization_watcher()
    settings = QuantizationSettings(
        measures=watcher is not None,
        inputs=inputs,
        method=method,
        percentile=percentile,
        samples=samples,
        seed=seed,
        budget=budget_of(budget) if budget else None,
        order=order,
        reduce_range=reduce_range,
        processor=None if processor == "here" else processor,
        rounding=rounding,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
    )
    backend = ctx.backend if ctx.names_backend else None
    if watcher is None:
        quantize_model(model, settings, ctx.remark, ctx.skip, backend=backend)
        return
    on_step = watcher.on_step
    found = quantize_model(model, settings, ctx.remark, ctx.skip, backend=backend, on_step=on_step)
    watcher.on_result(found)
