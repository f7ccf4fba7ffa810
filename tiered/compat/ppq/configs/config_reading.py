"""Read configs from QDQ, the inverse of `write_configs`: Q/DQ become configs of their readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tiered.analysis.roles.role import graphs_of
from tiered.compat.ppq.configs.observed import WITH_BIAS, Unknown
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.policies import QuantizationPolicy, QuantizationProperty
from tiered.compat.ppq.configs.qdq import CONTAINERS, key_of
from tiered.compat.ppq.configs.quantable import (
    quantable_of,
    quantize_node,
    quantized_numbers,
)
from tiered.compat.ppq.configs.states import QuantizationStates
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.graph import DataType, Model, Node, Tensor, Value
from tiered.graph.core.dtypes import integer_info
from tiered.numerics.quantization.scales import LEAST

Array = np.ndarray[Any, Any]
_P = QuantizationProperty
_S = QuantizationStates

_NO_UNITS: Final = frozenset({"DequantizeLinear", "If", "Loop", "QuantizeLinear", "Scan"})
_FLOATING: Final = QuantizationPolicy(_P.PER_TENSOR | _P.LINEAR | _P.SYMMETRICAL)


@dataclass(frozen=True)
class _Dequantized:
    """What a DequantizeLinear stands for.

    Attributes:
        config: ACTIVATED; each place gets a copy.
        value: the value that is quantised; None for a parameter.
        numbers: of a parameter; None for data.
    """

    config: TensorQuantizationConfig
    value: Value | None = None
    numbers: Array | None = None


def read_configs(model: Model) -> list[Unknown]:
    """Take Q/DQ out of a model; their readers get configs, from which `write_configs` makes them.

    The operands of a reader are ACTIVATED, its parameters BAKED and hold rounded numbers; a bias
    is PASSIVE_BAKED. A result is ACTIVATED where one of these nodes is its producer and all its
    readers read it quantised. All other places are FP32.

    Returns:
        Each DequantizeLinear that stays in the model, with the reason.
    """
    nodes = [node for graph in graphs_of(model) for node in graph.topological_order()]
    read: dict[Value, _Dequantized] = {}
    unread: list[Unknown] = []
    for node in nodes:
        if node.is_op("DequantizeLinear"):
            found = _read(node)
            if isinstance(found, _Dequantized):
                read[node.output] = found
            else:
                unread.append(Unknown(node.label, node.output.name, found))
    units = [node for node in nodes if any(value in read for value in node.inputs)]
    configs = [_configs(node, read) for node in units]
    with model.transaction():
        sources = {output: _source(output, each) for output, each in read.items()}
        for node in units:
            for slot, value in enumerate(node.inputs):
                if value in sources:
                    node.owner.set_input(node, slot, sources[value])
        for output in read:
            output.owner.prune([output.producer] if output.producer is not None else [])
    for node, config in zip(units, configs, strict=True):
        _baked(node, config)
    return unread


def _source(output: Value, read: _Dequantized) -> Value:
    """Return what takes the place of a dequantised value."""
    if read.value is not None:
        return read.value
    assert read.numbers is not None
    return output.owner.constant(Tensor.of(read.numbers), output.name)


# --- one DequantizeLinear -------------------------------------------------------------------------


def _read(node: Node) -> _Dequantized | str:
    """Return what a DequantizeLinear stands for, or why no config does."""
    output, codes = node.output, node.given(0)
    if output.is_graph_output:
        return "its result is an output of the graph"
    if not output.users:
        return "nothing reads it"
    for use in output.users:
        if use.node.op_type in _NO_UNITS:
            return f"its result is read by {use.node.op_type}"
        if quantable_of(use.node) is not None:
            return "its reader has configs already"
    config = _config(node)
    if isinstance(config, str):
        return config
    if codes.const is not None:
        return _parameter(config, codes.const, output)
    before = codes.producer
    if before is None or not before.is_op("QuantizeLinear"):
        return "its input is integer data"
    other = _config(before)
    if isinstance(other, str):
        return other
    value = before.given(0)
    if value.dtype != DataType.FLOAT:
        return "the quantised data is not float32"
    is_pair = key_of(config) == key_of(other)
    return _Dequantized(config, value) if is_pair else "Q and DQ have other parameters"


def _parameter(config: TensorQuantizationConfig, codes: Array, output: Value) -> _Dequantized | str:
    if not output.owner.is_main:
        return "a parameter of a body is not read"
    numbers = config.numbers(codes.astype(np.int64))
    if not np.array_equal(quantized_numbers(numbers, config), numbers):
        return "its numbers do not become the same integers again"
    return _Dequantized(config, numbers=numbers)


def _config(node: Node) -> TensorQuantizationConfig | str:
    """Return the config of a QuantizeLinear or DequantizeLinear, or why there is none."""
    codes = node.given(0) if node.op_type == "DequantizeLinear" else node.output
    dtype = None if codes.dtype is None else DataType(codes.dtype)
    if dtype not in CONTAINERS:
        return "its codes are no integers of 4 to 32 bits"
    scale, zero, offsets = node.given(1), node.input(2), node.const(2)
    if scale.const is None or (zero is not None and offsets is None):
        return "a scale or zero point is not constant"
    if scale.dtype != DataType.FLOAT or node.output.dtype not in (DataType.FLOAT, dtype):
        return "a scale is not float32"
    steps = scale.const
    if not (np.isfinite(steps).all() and (steps >= LEAST).all()):
        return "a scale is not a positive normal number"
    if steps.ndim > 1 or node.attr("block_size", 0):
        return "its scales are of blocks"
    offsets = np.zeros(steps.shape) if offsets is None else offsets
    if offsets.size != steps.size:
        return "scale and zero point differ in size"
    if steps.size == 1:
        steps = steps.reshape(())
    offsets = offsets.astype(np.int64).reshape(steps.shape)
    return _config_of(dtype, steps, offsets, int(node.attr("axis", 1)))


def _config_of(dtype: DataType, scale: Array, offset: Array, axis: int) -> TensorQuantizationConfig:
    limits = integer_info(dtype.numpy)
    policy = _P.PER_CHANNEL if scale.ndim else _P.PER_TENSOR
    policy |= _P.ASYMMETRICAL if offset.any() else _P.SYMMETRICAL
    return TensorQuantizationConfig(
        QuantizationPolicy(policy | _P.LINEAR),
        dtype.bits,
        int(limits.min),
        int(limits.max),
        scale=scale,
        offset=offset,
        channel_axis=axis if scale.ndim else None,
        state=_S.ACTIVATED,
    )


# --- the configs of a node ------------------------------------------------------------------------


def _configs(node: Node, read: dict[Value, _Dequantized]) -> OperationQuantizationConfig:
    """Return the configs of a node that reads dequantised values."""
    operands = [
        read[value].config.copy() if value is not None and value in read else _floating()
        for value in node.inputs
    ]
    results = [_floating() if value is None else _result(value, read) for value in node.outputs]
    return OperationQuantizationConfig(operands, results)


def _floating() -> TensorQuantizationConfig:
    return TensorQuantizationConfig(_FLOATING, state=_S.FP32)


def _result(value: Value, read: dict[Value, _Dequantized]) -> TensorQuantizationConfig:
    """Return the config of a result: ACTIVATED if it is read through one QuantizeLinear only."""
    readers = value.readers
    if value.has_one_user and readers[0].is_op("QuantizeLinear"):
        found = [_dequantized(use.node, read) for use in readers[0].output.users]
        if found and None not in found and found[0] is not None:
            return found[0].config.copy()
    return _floating()


def _dequantized(node: Node, read: dict[Value, _Dequantized]) -> _Dequantized | None:
    return read.get(node.output) if node.is_op("DequantizeLinear") else None


def _baked(node: Node, configs: OperationQuantizationConfig) -> None:
    """Give a node its configs; those of parameters say that the numbers are rounded."""
    quantable = quantize_node(node, configs)
    for slot, config, _ in list(quantable.parameters()):
        if config.state is not _S.ACTIVATED:
            continue
        if node.op_type in WITH_BIAS and slot == 2:
            for state in (_S.FP32, _S.PASSIVE_INIT, _S.PASSIVE, _S.PASSIVE_BAKED):
                config.state = state
        else:
            config.state = _S.BAKED
