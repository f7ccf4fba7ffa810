"""Known deviations of onnxruntime from the standard.

A pass that is right can change what onnxruntime computes where it takes such a liberty with the
nodes before and not with those after. Verification then believes onnx.reference, if what differs is
what the deviation explains. Each has a test that shows it, on every onnxruntime but those that have
mended it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from tiered.graph.io.protos import nodes_of
from tiered.graph.io.save import tensors_of
from tiered.runtime.compare.tensors import OutputDifference

if TYPE_CHECKING:
    from tiered.runtime.opening import Setting

    NodeTest = Callable[[onnx.NodeProto], bool]

Version = tuple[int, int]

_FEW_ULP = 8
_NEAR = 1e-6
_DIGIT = 2.0**-52
_HUGE = 3e38
_HALVES = frozenset((onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16))
_NARROW = _HALVES | {
    onnx.TensorProto.FLOAT8E4M3FN,
    onnx.TensorProto.FLOAT8E4M3FNUZ,
    onnx.TensorProto.FLOAT8E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ,
    onnx.TensorProto.FLOAT4E2M1,
}


@dataclass(frozen=True)
class Deviation:
    """One liberty of onnxruntime's.

    Attributes:
        name: its name in messages.
        what: the behaviour, and the standard's.
        applies: whether a model may show it.
        explains: whether it accounts for a difference.
        mended: the first onnxruntime without it, as (major, minor).
        settings: the session settings that show it.
    """

    name: str
    what: str
    applies: Callable[[onnx.ModelProto], bool]
    explains: Callable[[OutputDifference], bool]
    mended: Version | None = None
    settings: tuple[Setting, ...] = ("reproducible", "unoptimised", "default")

    def is_of(self, version: Version) -> bool:
        """Return whether that version of onnxruntime has it."""
        return self.mended is None or version < self.mended


def explaining(
    models: Iterable[onnx.ModelProto],
    differences: Iterable[OutputDifference],
    setting: Setting = "reproducible",
) -> list[Deviation]:
    """Return the deviations that models may show, if together they explain all differences."""
    models, version = list(models), installed()
    possible = (d for d in DEVIATIONS if setting in d.settings and d.is_of(version))
    present = [d for d in possible if any(map(d.applies, models))]
    found: dict[str, Deviation] = {}
    for difference in differences:
        deviation = next((d for d in present if d.explains(difference)), None)
        if deviation is None:
            return []
        found[deviation.name] = deviation
    return list(found.values())


def installed() -> Version:
    """Return which onnxruntime is installed."""
    import onnxruntime

    major, minor, *_ = onnxruntime.__version__.split(".")
    return int(major), int(minor)


def _has(*op_types: str) -> Callable[[onnx.ModelProto], bool]:
    def has(model: onnx.ModelProto) -> bool:
        return any(node.op_type in op_types and not node.domain for node in nodes_of(model))

    return has


def _has_prefix(prefix: str) -> Callable[[onnx.ModelProto], bool]:
    return lambda model: any(node.op_type.startswith(prefix) for node in nodes_of(model))


def has_halves(model: onnx.ModelProto) -> bool:
    """Return whether a model computes in 16-bit floats anywhere, as far as types are known."""
    return _holds(model, _HALVES)


def has_narrow_floats(model: onnx.ModelProto) -> bool:
    """Return whether a model holds floats of 16 bits or fewer, as far as types are known."""
    return _holds(model, _NARROW)


def _holds(model: onnx.ModelProto, dtypes: frozenset[int]) -> bool:
    graph = model.graph
    infos = (*graph.input, *graph.output, *graph.value_info)
    return (
        any(info.type.tensor_type.elem_type in dtypes for info in infos)
        or any(tensor.data_type in dtypes for tensor in tensors_of(model))
        or any(
            attribute.name in ("to", "dtype") and attribute.i in dtypes
            for node in nodes_of(model)
            for attribute in node.attribute
        )
    )


def _is_sign_of_zero(difference: OutputDifference) -> bool:
    return "in the sign of zero" in difference.reason


def _is_shape(difference: OutputDifference) -> bool:
    return difference.reason.startswith("shape ")


def _is_rounding(difference: OutputDifference) -> bool:
    is_small = difference.max_ulp is not None and difference.max_ulp <= _FEW_ULP
    return is_small and not difference.nan_mismatch


def _is_last_digit(difference: OutputDifference) -> bool:
    # No relative difference is known of what should be 0. The largest integers lose 2**63 * 2**-52.
    is_digit = 0 < difference.max_rel <= _DIGIT and difference.max_abs <= 2**63 * _DIGIT
    return is_digit and difference.max_ulp is None


def _is_of_integers(difference: OutputDifference) -> bool:
    return difference.max_ulp is None and not _is_shape(difference)


def _is_infinity(difference: OutputDifference) -> bool:
    return difference.max_abs == float("inf") and not difference.nan_mismatch


def _is_nan_or_lowest(difference: OutputDifference) -> bool:
    return _is_of_floats(difference) and (difference.nan_mismatch > 0 or difference.max_abs > _HUGE)


def _is_of_floats(difference: OutputDifference) -> bool:
    return difference.max_ulp is not None


def _is_another_order(difference: OutputDifference) -> bool:
    is_near = difference.cosine is not None and difference.cosine >= 1 - _NEAR
    return is_near and not difference.nan_mismatch and not _is_infinity(difference)


def _multiplies_transpose_by_vector(model: onnx.ModelProto) -> bool:
    """Return whether a MatMul has a Transpose on its left, and on its right perhaps a vector."""
    graph = model.graph
    ranks = {tensor.name: len(tensor.dims) for tensor in tensors_of(model)}
    for info in (*graph.input, *graph.value_info):
        if info.type.tensor_type.HasField("shape"):
            ranks[info.name] = len(info.type.tensor_type.shape.dim)
    nodes = list(nodes_of(model))
    transposed = {node.output[0] for node in nodes if node.op_type == "Transpose"}
    return any(
        node.input[0] in transposed and ranks.get(node.input[1], 1) == 1
        for node in nodes
        if node.op_type == "MatMul" and not node.domain
    )


def _returns_masked_scores(model: onnx.ModelProto) -> bool:
    """Return whether an Attention with a mask and is_causal returns its scores."""
    return any(
        len(node.output) > 3
        and bool(node.output[3])
        and len(node.input) > 3
        and bool(node.input[3])
        and any(each.name == "is_causal" and each.i for each in node.attribute)
        for node in nodes_of(model)
        if node.op_type == "Attention" and not node.domain
    )


DEVIATIONS = (
    Deviation(
        "where_negative_zero",
        "Where loses the sign of a -0.0 that it selects from X",
        _has("Where"),
        _is_sign_of_zero,
    ),
    Deviation(
        "extremum_of_zeros",
        "Max and Min of two zeros take the sign of the first or the second, by no rule",
        _has("Max", "Min", "Clip", "Relu"),
        _is_sign_of_zero,
    ),
    Deviation(
        "extremum_of_large_integers",
        "Max and Min of 64-bit integers choose the other one where they differ by 2**31 and more "
        "(up to 1.31)",
        _has("Max", "Min", "Clip"),
        _is_of_integers,
        mended=(1, 32),
    ),
    Deviation(
        "pow_of_columns",
        "Pow rounds differently by whether the last dim is 1 (one std::pow for each element)",
        _has("Pow"),
        _is_rounding,
    ),
    Deviation(
        "reduce_of_nothing",
        "a Reduce of an empty tensor by negative axes gives another shape (up to 1.31)",
        _has_prefix("Reduce"),
        _is_shape,
        mended=(1, 32),
    ),
    Deviation(
        "reduce_of_large_integers",
        "a Reduce of 64-bit integers computes with doubles: beyond 2**53 last digits are lost",
        _has_prefix("Reduce"),
        _is_last_digit,
    ),
    Deviation(
        "slice_backwards_to_the_largest_end",
        "a Slice with a negative step takes the largest integer as its end for the first element",
        _has("Slice"),
        _is_shape,
    ),
    Deviation(
        "clip_without_bound",
        "Clip makes infinities finite where it has no bound",
        _has("Clip"),
        _is_infinity,
    ),
    Deviation(
        "max_pool_of_nan",
        "MaxPool passes over some NaN, and gives the lowest number for a window of NaN or -Inf "
        "alone",
        _has("MaxPool"),
        _is_nan_or_lowest,
    ),
    Deviation(
        "lowest_number_of_causal_masks",
        "Attention with an added mask and is_causal writes the lowest number to qk_matmul_output, "
        "not -Inf",
        _returns_masked_scores,
        _is_infinity,
    ),
    Deviation(
        "kernels_by_opset",
        "AveragePool, ReduceLogSum, ReduceLogSumExp and Attention have other kernels from some "
        "opsets on, which add up in another order",
        _has("AveragePool", "ReduceLogSum", "ReduceLogSumExp", "Attention"),
        _is_another_order,
    ),
    Deviation(
        "halves_kept_wide",
        "float16 stays float32 between nodes: it does not overflow, and casts are no rounding",
        has_halves,
        _is_of_floats,
    ),
    Deviation(
        "packed_constants",
        "products by a packed constant sum in another order than by a computed operand: MatMul, "
        "Gemm and GRU for one row and for long sums; LSTM where the share of the batch that a "
        "thread gets is one row, so by the number of threads",
        _has("MatMul", "Gemm", "LSTM", "GRU"),
        _is_another_order,
        settings=("unoptimised", "default"),
    ),
    Deviation(
        "transpose_into_product_with_vector",
        "MatmulTransposeFusion takes a Transpose into MatMul(_, vector) and computes another "
        "product, up to 1.32 at least",
        _multiplies_transpose_by_vector,
        _is_of_floats,
        settings=("default",),
    ),
)
"""The known deviations of onnxruntime on the CPU."""

NEWEST: Version = (1, 32)
"""The newest onnxruntime that was looked at: a later one may have mended more."""
