"""Write configs as QDQ: what they do becomes QuantizeLinear and DequantizeLinear in the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered.compat.ppq.configs.policies import RoundingPolicy
from tiered.compat.ppq.configs.quantable import (
    QuantableNode,
    forget_configs,
    quantable_nodes,
    quantized_numbers,
)
from tiered.compat.ppq.configs.states import QuantizationStates
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.graph import DataType, Model, Tensor, Use, Value
from tiered.graph.core.dtypes import integer_info
from tiered.numerics.quantization.placement import axis_attribute, dequantized, insert_pair
from tiered.numerics.quantization.scales import Weight
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

Array = np.ndarray[Any, Any]

CONTAINERS: Final = (
    DataType.INT4,
    DataType.UINT4,
    DataType.INT8,
    DataType.UINT8,
    DataType.INT16,
    DataType.UINT16,
    DataType.INT32,
)
_FIRST_OPSETS: Final = {DataType.INT8: 10, DataType.UINT8: 10, DataType.INT32: 10}
_FIRST_OPSET_OF_OTHERS: Final = 21
_PER_CHANNEL_OPSET: Final = 13


def write_configs(model: Model) -> None:
    """Write the configs of all nodes as Q/DQ; the nodes have none after that.

    A parameter is stored as integers with a DequantizeLinear. Other operands and results that are
    ACTIVATED or PASSIVE get a QuantizeLinear and a DequantizeLinear. OVERLAPPED, SOI and FP32
    tensors get nothing.

    Raises:
        ModelError: a config has no scale yet, or ONNX cannot say what it does; nothing changes.
    """
    nodes = quantable_nodes(model)
    _check(model, nodes)
    results = {
        value: config
        for each in nodes
        for config, value in list(each.places())[len(each.node.inputs) :]
        if value is not None and QuantizationStates.is_activated(config.state)
    }
    operands = _operands(nodes)
    with model.transaction():
        for each in nodes:
            _store_parameters(each)
        for (value, key), (config, uses) in operands.items():
            if value not in results or key_of(results[value]) != key:
                insert_pair(value, uses, _scale(config), _zero(config), config.channel_axis)
        for value, config in results.items():
            _pair_result(value, config)
    for each in nodes:
        forget_configs(each.node)


# --- what ONNX can say ----------------------------------------------------------------------------


def _check(model: Model, nodes: Sequence[QuantableNode]) -> None:
    """Raise if a config cannot be written."""
    known = {config for each in nodes for config in each.config}
    opset = model.opset()
    for each in nodes:
        parameters = {slot for slot, _, _ in each.parameters()}
        for slot, (config, value) in enumerate(each.places()):
            refusal = _refusal(config, known, opset, is_data=slot not in parameters)
            if refusal := refusal or _axis_refusal(config, value):
                name = "" if value is None else value.name
                raise ModelError(f"{name!r} at node {each.node.label!r}: {refusal}")
        for _, config, value in each.parameters():
            if config.state.is_baked:
                _baked_codes(each, config, value)
            elif QuantizationStates.is_activated(config.state) and not _is_finite(value):
                raise ModelError(f"{value.name!r} at node {each.node.label!r} has NaN or Inf")


def _is_finite(value: Value) -> bool:
    return value.const is not None and bool(np.isfinite(value.const).all())


def _refusal(
    config: TensorQuantizationConfig,
    known: set[TensorQuantizationConfig],
    opset: int,
    *,
    is_data: bool,
) -> str:
    """Return why a config cannot be written; empty if it can."""
    if config.is_dequantized:
        return "the config is dequantized; call restore first"
    if not config.can_export():
        return f"its state is {config.state.name}; set its scale and offset, and activate it"
    if config.state is QuantizationStates.OVERLAPPED:
        return "" if config.dominated_by in known else "its dominator is the config of no node"
    if config.state.is_float:
        return ""
    if is_data and config.state.is_baked:
        return "data cannot be baked, only parameters can"
    dtype = _container(config)
    if dtype is None:
        return f"no integer dtype holds {config.quant_min} to {config.quant_max}"
    first = _FIRST_OPSETS.get(dtype, _FIRST_OPSET_OF_OTHERS)
    if config.policy.is_per_channel:
        first = max(first, _PER_CHANNEL_OPSET)
    if opset < first:
        return f"{dtype.name.lower()} scales of this form need opset {first}, not {opset}"
    return _data_refusal(config, dtype) if is_data else ""


def _axis_refusal(config: TensorQuantizationConfig, value: Value | None) -> str:
    """Return why the scales of a config do not fit the channels of a tensor."""
    axis, scale = config.channel_axis, config.scale
    is_float = config.state.is_float or config.state is QuantizationStates.OVERLAPPED
    if axis is None or scale is None or is_float or value is None or value.shape is None:
        return ""
    shape = value.shape
    if not -len(shape) <= axis < len(shape):
        return f"shape {list(shape)} has no axis {axis}"
    is_other = isinstance(shape[axis], int) and shape[axis] != scale.size
    said = f"axis {axis} of shape {list(shape)} has {counted(scale.size, 'scale')}"
    return said if is_other else ""


def _data_refusal(config: TensorQuantizationConfig, dtype: DataType) -> str:
    """Return why QuantizeLinear does not round data as a config does."""
    limits = integer_info(dtype.numpy)
    if dtype is DataType.INT32:
        return "QuantizeLinear makes no int32"
    if (config.quant_min, config.quant_max) != (limits.min, limits.max):
        return f"QuantizeLinear saturates at {limits.min} and {limits.max}"
    if config.rounding is not RoundingPolicy.ROUND_HALF_EVEN:
        return f"QuantizeLinear rounds halves to even, not by {config.rounding.name}"
    return ""


def _container(config: TensorQuantizationConfig) -> DataType | None:
    """Return the least dtype of at least as many bits that holds the codes."""
    for dtype in CONTAINERS:
        limits = integer_info(dtype.numpy)
        holds = limits.min <= config.quant_min and config.quant_max <= limits.max
        if holds and dtype.bits >= config.num_of_bits:
            return dtype
    return None


# --- the edit -------------------------------------------------------------------------------------


def _zero(config: TensorQuantizationConfig) -> Array:
    dtype = _container(config)
    assert dtype is not None
    assert config.offset is not None
    return config.offset.astype(dtype.numpy)


def _scale(config: TensorQuantizationConfig) -> Array:
    assert config.scale is not None
    return config.scale


def _store_parameters(quantable: QuantableNode) -> None:
    for slot, config, value in list(quantable.parameters()):
        if config.state.is_baked:
            codes = _baked_codes(quantable, config, value)
        elif QuantizationStates.is_activated(config.state):
            assert value.const is not None
            codes = config.codes(value.const)
        else:
            continue
        zero = _zero(config)
        weight = Weight(codes.astype(zero.dtype), _scale(config), zero, config.channel_axis)
        node = quantable.node
        node.owner.set_input(node, slot, dequantized(value.owner, value.name, weight))
        if not value.is_used:
            value.owner.remove_constant(value)


def _baked_codes(quantable: QuantableNode, config: TensorQuantizationConfig, value: Value) -> Array:
    """Return the integers of a baked parameter.

    Those of the numbers before come first: 32 bits are more than a float32 distinguishes.

    Raises:
        ModelError: it holds numbers that no integers stand for.
    """
    numbers = value.const
    assert numbers is not None
    before = quantable.stored.get(value)
    for source in (numbers if before is None else before.numpy(), numbers):
        if np.array_equal(quantized_numbers(source, config), numbers):
            return config.codes(source)
    raise ModelError(
        f"parameter {value.name!r} of {quantable.node.label!r} is BAKED, but holds other numbers "
        "than its scale and offset allow; was it changed afterwards?"
    )


Key = tuple[bytes, bytes, str, int | None]


def key_of(config: TensorQuantizationConfig) -> Key:
    """Return what Q/DQ write of a config with a scale: equal for configs that quantise alike."""
    zero = _zero(config)
    return _scale(config).tobytes(), zero.tobytes(), str(zero.dtype), config.channel_axis


def _operands(
    nodes: Sequence[QuantableNode],
) -> dict[tuple[Value, Key], tuple[TensorQuantizationConfig, list[Use]]]:
    """Return the operands that get a pair, those that agree together."""
    uses: dict[tuple[Value, Key], tuple[TensorQuantizationConfig, list[Use]]] = {}
    for each in nodes:
        parameters = {slot for slot, _, _ in each.parameters()}
        for slot, (config, value) in enumerate(list(each.places())[: len(each.node.inputs)]):
            if value is None or slot in parameters:
                continue
            if QuantizationStates.is_activated(config.state):
                place = value, key_of(config)
                uses.setdefault(place, (config, []))[1].append(Use(each.node, slot))
    return uses


def _pair_result(value: Value, config: TensorQuantizationConfig) -> None:
    """Insert a pair after a node, so that the value keeps its name and readers."""
    node, graph, axis = value.producer, value.owner, axis_attribute(config.channel_axis)
    assert node is not None
    name = value.name
    scale = graph.constant(_scale(config), f"{name}_scale")
    zero = graph.constant(Tensor.of(_zero(config)), f"{name}_zero_point")
    last = graph.add_node("DequantizeLinear", (), (), axis, name=f"{name}_DequantizeLinear")
    between = graph.insert_after(last, node, value.index)
    q = graph.op.QuantizeLinear(between, scale, zero, name=f"{name}_QuantizeLinear", **axis)
    graph.set_inputs(last, [q, scale, zero])
