"""x: float  =>  x: uint8, and Cast(x) * scale + bias where x was"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiered import (
    DataType,
    InterfaceMap,
    Model,
    PassContext,
    Skip,
    TensorType,
    Unable,
    UsageError,
    Value,
    module_pass,
)
from tiered.rewriter.idioms.main_tensors import input_named
from tiered.support.amounts import counted


@module_pass(opt_level=None, required=("infer_shapes",), touches=("*",), changes_interface=True)
def eight_bits_io(
    model: Model,
    ctx: PassContext,
    *,
    name: str = "",
    scale: tuple[float, ...] = (1.0,),
    bias: tuple[float, ...] = (0.0,),
    axis: int = 1,
) -> Skip | None:
    """Take an image as uint8, and compute the float image that the model expects: PopRT's pass.

    A pixel p becomes p * scale + bias: of all 256 values, exactly what numpy computes in the dtype
    of the input, or in float32 for one of float16, which is rounded once. Normalisation by mean and
    std of pixels from 0 to 255 is scale = 1 / std and bias = -mean / std.

    Args:
        name: the input; may be left out if the model has one.
        scale: one number, or one for each channel.
        bias: one number, or one for each channel.
        axis: the axis of the channels: 1 for NCHW, -1 for NHWC.

    Raises:
        UsageError: the model has no such input, or it has no such axis or another number of
            channels.
    """
    value = _input(model, name)
    if value.dtype == DataType.UINT8:
        return Skip("the input is uint8")
    if value.dtype not in (DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE):
        return Unable("the input is not float, float16 or double")
    if value.is_overridable:
        return Unable("the input has a default")
    if value.is_graph_output:
        return Unable("the input is an output")
    # Runtimes differ in whether they round a float16 product before they add to it.
    computed = DataType.FLOAT if value.dtype == DataType.FLOAT16 else DataType(value.dtype)
    numbers = [_per_channel(value, given, axis, computed.numpy) for given in (scale, bias)]
    _rewrite(model, value, numbers, computed)
    return None


def _input(model: Model, name: str) -> Value:
    if name:
        return input_named(model, name, "eight_bits_io")
    inputs = [value for value in model.main.inputs if not value.is_overridable]
    if len(inputs) != 1:
        names = ", ".join(value.name for value in inputs)
        raise UsageError(f"eight_bits_io: the model has the inputs {names}; give a name")
    return inputs[0]


def _per_channel(
    value: Value, given: tuple[float, ...], axis: int, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Return numbers in the shape that broadcasts along the channels."""
    numbers = np.array(given, dtype)
    if len(given) == 1:
        return numbers.reshape(())
    rank = value.rank
    if rank is None:
        raise UsageError(f"eight_bits_io: the rank of {value.name!r} is unknown; set its shape")
    if not -rank <= axis < rank:
        raise UsageError(f"eight_bits_io: {value.name!r} has rank {rank}, and no axis {axis}")
    channels = value.dim(axis)
    if isinstance(channels, int) and channels != len(given):
        raise UsageError(
            f"eight_bits_io: {value.name!r} has {counted(channels, 'channel')} at axis "
            f"{axis}, and "
            f"{len(given)} numbers are given"
        )
    return numbers.reshape([-1 if at == axis % rank else 1 for at in range(rank)])


def _rewrite(
    model: Model, value: Value, numbers: Sequence[np.ndarray[Any, Any]], computed: DataType
) -> None:
    graph, name, (scale, bias) = model.main, value.name, numbers
    assert value.dtype is not None
    dtype, at = DataType(value.dtype), graph.inputs.index(value)
    is_scaled = not (scale == 1).all()
    # A product with a negative scale may be -0.0, which + 0.0 changes.
    is_moved = not (bias == 0).all() or not (scale >= 0).all()
    pixels = graph.add_input(
        model.names.fresh(name), TensorType(DataType.UINT8, value.shape), index=at
    )
    result = graph.op.Cast(pixels, to=int(computed if is_scaled or is_moved else dtype))
    if is_scaled:
        result = graph.op.Mul(result, graph.constant(scale, f"{name}_scale"))
    if is_moved:
        result = graph.op.Add(result, graph.constant(bias, f"{name}_bias"))
    if result.dtype != dtype:
        result = graph.op.Cast(result, to=int(dtype))
    graph.replace_uses(value, result)
    graph.remove_input(value)
    graph.rename_value(pixels, name)

    def image(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        # As an array, since numpy computes a scalar in its own dtype.
        floats: np.ndarray[Any, Any] = array.astype(computed.numpy) * scale + bias
        return floats.astype(dtype.numpy)

    model.note_interface(InterfaceMap(feeds={name: (name, image)}))
