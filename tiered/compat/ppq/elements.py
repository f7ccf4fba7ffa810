"""Variable and Operation: a value and a node by PPQ's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, overload

import numpy as np

from tiered.compat.argument_types import checks_arguments
from tiered.compat.ppq import variable_sources
from tiered.compat.ppq.attributes import OperationAttributes
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.quantable import (
    QuantableNode,
    QuantFunction,
    check_places,
    quantable_of,
    quantized_numbers,
)
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.compat.ppq.detached import free_node, free_value
from tiered.compat.ppq.handles import (
    NodeHandle,
    ValueHandle,
    value_of,
)
from tiered.compat.ppq.operands import Ports, Readers
from tiered.compat.ppq.opsets import Opset, OpSocket
from tiered.graph import Graph, Node, Value
from tiered.graph.core.schema import operators_of
from tiered.graph.edits import surgery
from tiered.rewriter.subgraphs import graph_search
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, did_you_mean

PLATFORM = "tiered.device"
"""The key of metadata that PPQ calls the platform of an operation."""


@checks_arguments
class Variable(ValueHandle):
    """A `Value`. Two are equal when their values are the same one.

    Args:
        name: the value; or the name of a new variable, which `append_variable` adds to a graph.
        value: of a new variable: its array, which makes it a parameter.
        is_parameter: whether a new variable is one.
        shape, dtype: of a new variable without an array.
    """

    __slots__ = ()

    def __init__(
        self,
        name: Value | str,
        value: np.ndarray[Any, Any] | None = None,
        is_parameter: bool = False,
        shape: Sequence[int | str | None] | None = None,
        dtype: int | None = None,
    ) -> None:
        if isinstance(name, Value):
            self._value = name
            return
        if is_parameter and value is None:
            raise ModelError(f"parameter {name!r} needs a value")
        self._value = free_value(name, value)
        if dtype is not None:
            surgery.retype(self._value, dtype=dtype, shape=None if shape is None else tuple(shape))
        elif shape is not None:
            self.shape = shape

    @property
    def name(self) -> str:
        return self._value.name

    @name.setter
    def name(self, name: str) -> None:
        self._value.owner.rename_value(self._value, name)

    @property
    def is_parameter(self) -> bool:
        return self._value.is_initializer and not self._value.is_overridable

    @is_parameter.setter
    def is_parameter(self, is_parameter: bool) -> None:
        surgery.mark_parameter(self._value, is_parameter)

    @property
    def value(self) -> np.ndarray[Any, Any] | None:
        return self._value.const

    @value.setter
    def value(self, contents: np.ndarray[Any, Any]) -> None:
        self._value.owner.assign(self._value, contents)

    @property
    def source_op(self) -> Operation | None:
        source = variable_sources.source_of(self._value)
        return None if source is None else operation_of(source)

    @source_op.setter
    def source_op(self, operation: Operation | None) -> None:
        if operation is None:
            variable_sources.take_away(self._value)
        else:
            variable_sources.give(self._value, operation._node)

    @property
    def src_idx(self) -> int | None:
        return None if variable_sources.source_of(self._value) is None else self._value.index

    @property
    def dest_ops(self) -> Readers:
        return Readers(operation_of(use.node) for use in self._value.users)

    @property
    def dest_idx(self) -> tuple[int, ...]:
        return tuple(use.slot for use in self._value.users)

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        return self._value.shape

    @shape.setter
    def shape(self, shape: Sequence[int | str | None] | None) -> None:
        surgery.retype(self._value, shape=None if shape is None else tuple(shape))

    @property
    def dtype(self) -> int | None:
        return self._value.dtype

    @dtype.setter
    def dtype(self, dtype: int) -> None:
        surgery.retype(self._value, dtype=dtype)

    def copy(self, copy_value: bool = False) -> Variable:
        """Return a variable of the same type that is in no graph yet: `append_variable` adds it."""
        owner, contents = self._value.owner, self._value.const
        if not copy_value or contents is None:
            return Variable(surgery.new_value(owner, self.name, self._value.type))
        made = owner.create_value(self.name, contents)
        owner.remove_constant(made)
        return Variable(made)


def check_type(graph: Graph, name: str, op_type: str, domain: str = "") -> None:
    """Raise if an operation cannot be of a type: neither an operator nor a function has it.

    Raises:
        ModelError: so it is.
    """
    known = operators_of(domain)
    if known and op_type not in known and graph.model.function(domain, op_type) is None:
        raise ModelError(
            f"operation {name!r} cannot be of the type {op_type!r}: there is no such "
            f"operator{did_you_mean(op_type, known)}"
        )


@checks_arguments
class Operation(NodeHandle):
    """A `Node`. Two are equal when their nodes are the same one.

    Args:
        name: the node; or the name of a new operation, which `append_operation` adds to a graph.
        op_type, attributes, platform: of a new operation.
    """

    __slots__ = ()

    def __init__(
        self,
        name: Node | str,
        op_type: str = "",
        attributes: Mapping[str, Any] | None = None,
        platform: str | Enum | None = None,
    ) -> None:
        self._node = free_node(name, op_type, attributes) if isinstance(name, str) else name
        if platform is not None:
            self.platform = platform

    @property
    def name(self) -> str:
        return self._node.label

    @name.setter
    def name(self, name: str) -> None:
        self._node.owner.rename_node(self._node, name)

    @property
    def type(self) -> str:
        return self._node.op_type

    @type.setter
    def type(self, op_type: str) -> None:
        check_type(self._node.owner, self.name, op_type, self._node.domain)
        self._node.owner.set_operator(self._node, op_type, self._node.domain)

    @property
    def opset(self) -> Opset:
        domain = self._node.domain
        imports = self._node.owner.root.opset_imports
        return Opset(domain or "ai.onnx", imports.get(domain, self._node.version))

    @property
    def socket(self) -> OpSocket:
        return OpSocket.of(self._node)

    socker = socket  # PPQ's documents misspell it

    @property
    def inputs(self) -> Ports:
        return Ports(self._node, is_input=True, made=variable_of)

    @inputs.setter
    def inputs(self, inputs: Iterable[Variable | None]) -> None:
        self.inputs[:] = inputs

    @property
    def outputs(self) -> Ports:
        return Ports(self._node, is_input=False, made=variable_of)

    def set_input(self, index: int, variable: Variable | None) -> None:
        """Read another variable at one place."""
        if not 0 <= index < len(self._node.inputs):
            raise ModelError(
                f"operation {self.name!r} has {counted(len(self._node.inputs), 'input')}, "
                f"so no input {index}"
            )
        self._node.owner.set_input(self._node, index, value_of(variable))

    def set_output(self, index: int, variable: Variable) -> None:
        """Compute another variable, without a source, at one place; the former has none then."""
        count = len(self._node.outputs)
        if not 0 <= index < count:
            raise ModelError(
                f"operation {self.name!r} has {counted(count, 'output')}, so no output {index}"
            )
        variable_sources.exchange(self._node, index, variable._value)

    @property
    def parameters(self) -> tuple[Variable, ...]:
        return tuple(value for value in self.inputs if value is not None and value.is_parameter)

    @property
    def num_of_input(self) -> int:
        return len(self._node.inputs)

    @property
    def num_of_output(self) -> int:
        return len(self._node.outputs)

    @property
    def num_of_parameter(self) -> int:
        return len(self.parameters)

    @property
    def attributes(self) -> OperationAttributes:
        return OperationAttributes(self._node)

    @attributes.setter
    def attributes(self, attributes: Mapping[str, Any]) -> None:
        node, given = self._node, dict(attributes)
        with node.owner.model.transaction():
            for name in {**node.attributes, **given}:
                node.owner.set_attribute(node, name, given.get(name))

    def set_attribute(self, name: str, value: Any) -> None:
        self._node.owner.set_attribute(self._node, name, value)

    @property
    def platform(self) -> str | None:
        """The name of the platform, in the metadata of the model."""
        return self._node.metadata.get(PLATFORM)

    @platform.setter
    def platform(self, platform: str | Enum | None) -> None:
        metadata = {key: text for key, text in self._node.metadata.items() if key != PLATFORM}
        if platform is not None:
            metadata[PLATFORM] = platform.name if isinstance(platform, Enum) else platform
        self._node.owner.set_metadata(self._node, metadata)

    @property
    def is_computing_op(self) -> bool:
        return self._node.op_type in graph_search.COMPUTING_OPS

    @property
    def extension_attrib(self) -> dict[str, Any]:
        return self._node.scratch

    def copy(self) -> Operation:
        """Return the operation without operands, in no graph yet: `append_operation` adds it."""
        owner = self._node.owner
        made = owner.clone(self._node)
        owner.remove_node(made)
        return Operation(made)


@checks_arguments
class QuantableOperation(Operation):
    """An operation with configs; `QuantableGraph.quantize_operation` makes it."""

    __slots__ = ()

    @property
    def _quantable(self) -> QuantableNode:
        found = quantable_of(self._node)
        if found is None:
            raise ModelError(f"operation {self.name!r} has no configs any more")
        return found

    @property
    def config(self) -> OperationQuantizationConfig:
        return self._quantable.config

    @config.setter
    def config(self, config: OperationQuantizationConfig) -> None:
        check_places(self._node, config)
        self._quantable.config = config

    @property
    def input_quant_config(self) -> list[TensorQuantizationConfig]:
        return self.config.input_quantization_config

    @property
    def output_quant_config(self) -> list[TensorQuantizationConfig]:
        return self.config.output_quantization_config

    @property
    def config_with_variable(self) -> list[tuple[TensorQuantizationConfig, Variable | None]]:
        return [(config, variable_of(value)) for config, value in self._quantable.places()]

    def store_parameter_value(self) -> QuantableOperation:
        self._quantable.store()
        return self

    def baking_parameters(
        self, quant_func: QuantFunction = quantized_numbers
    ) -> QuantableOperation:
        self._quantable.bake(quant_func)
        return self

    def dequantize(
        self, parameter_only: bool = False, expire_device: object = None
    ) -> QuantableOperation:
        """Return the operation to float; `expire_device` is PPQ's, and has no meaning here."""
        self._quantable.dequantize(parameter_only=parameter_only)
        return self

    def restore_quantize_state(self, expire_device: object = None) -> QuantableOperation:
        self._quantable.restore()
        return self


class QuantableVariable(Variable):
    """A variable that a quantable operation reads or computes."""

    __slots__ = ()

    @property
    def stored_value(self) -> np.ndarray[Any, Any] | None:
        """What a baked parameter was before; of others their contents."""
        for use in self._value.users:
            found = quantable_of(use.node)
            if found is not None and self._value in found.stored:
                return found.stored[self._value].numpy()
        return self.value

    @property
    def dest_op_configs(self) -> list[TensorQuantizationConfig | None]:
        return [_config_of(use.node, use.slot, is_input=True) for use in self._value.users]

    @property
    def dest_op_platforms(self) -> list[str | None]:
        return [operation.platform for operation in self.dest_ops]

    @property
    def source_op_config(self) -> TensorQuantizationConfig | None:
        producer = self._value.producer
        return None if producer is None else _config_of(producer, self._value.index, is_input=False)

    @property
    def source_op_platform(self) -> str | None:
        return None if self.source_op is None else self.source_op.platform


def _config_of(node: Node, at: int, *, is_input: bool) -> TensorQuantizationConfig | None:
    found = quantable_of(node)
    if found is None:
        return None
    config = found.config
    return (config.input_quantization_config if is_input else config.output_quantization_config)[at]


@overload
def variable_of(value: Value) -> Variable: ...
@overload
def variable_of(value: None) -> None: ...
@overload
def variable_of(value: Value | None) -> Variable | None: ...
def variable_of(value: Value | None) -> Variable | None:
    if value is None:
        return None
    nodes = [use.node for use in value.users]
    if value.producer is not None:
        nodes.append(value.producer)
    is_quantable = any(quantable_of(node) is not None for node in nodes)
    return QuantableVariable(value) if is_quantable else Variable(value)


def operation_of(node: Node) -> Operation:
    return Operation(node) if quantable_of(node) is None else QuantableOperation(node)


def _public(cls: type) -> frozenset[str]:
    return frozenset(name for name in vars(cls) if not name.startswith("_"))


Operation.when_quantized = _public(QuantableOperation)
Variable.when_quantized = _public(QuantableVariable)
