"""Variable and Operation: a value and a node by PPQ's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from tiered.compat.ppq.opsets import Opset, OpSocket
from tiered.errors import ModelError
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.edits import surgery
from tiered.rewriter.subgraphs import graph_search

PLATFORM = "tiered.device"
"""The key of metadata that PPQ calls the platform of an operation."""


@dataclass(slots=True, unsafe_hash=True, init=False)
class Variable:
    """A `Value`. Two are equal when their values are the same one.

    Args:
        value: the value; or the name of a new variable, which `append_variable` adds to a graph.
        contents: of a new variable: its array.
    """

    _value: Value

    def __init__(self, value: Value | str, contents: np.ndarray[Any, Any] | None = None) -> None:
        self._value = _free_value(value, contents) if isinstance(value, str) else value

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
        return None if self._value.producer is None else Operation(self._value.producer)

    @source_op.setter
    def source_op(self, operation: Operation | None) -> None:
        if operation is None:
            _take_out(self._value)
            return
        operation._node.owner.connect(operation._node, None, self._value)

    @property
    def src_idx(self) -> int | None:
        return None if self._value.producer is None else self._value.index

    @property
    def dest_ops(self) -> tuple[Operation, ...]:
        return tuple(Operation(use.node) for use in self._value.users)

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


@dataclass(slots=True, eq=False)
class Attributes(MutableMapping[str, Any]):
    """The attributes of a node; writing one writes it into the model."""

    _node: Node

    def __getitem__(self, name: str) -> Any:
        return self._node.attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._node.owner.set_attribute(self._node, name, value)

    def __delitem__(self, name: str) -> None:
        self._node.owner.set_attribute(self._node, name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.attributes)

    def __len__(self) -> int:
        return len(self._node.attributes)


@dataclass(slots=True, unsafe_hash=True, init=False)
class Operation:
    """A `Node`. Two are equal when their nodes are the same one.

    Args:
        node: the node; or the name of a new operation, which `append_operation` adds to a graph.
        op_type: of a new operation.
        attributes: of a new operation.
    """

    _node: Node

    def __init__(
        self,
        node: Node | str,
        op_type: str = "",
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self._node = _free_node(node, op_type, attributes) if isinstance(node, str) else node

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
        self._node.owner.set_operator(self._node, op_type, self._node.domain)

    @property
    def opset(self) -> Opset:
        domain = self._node.domain
        imports = self._node.owner.root.opset_imports
        return Opset(domain or "ai.onnx", imports.get(domain, self._node.version))

    @property
    def socket(self) -> OpSocket:
        return OpSocket.of(self._node)

    @property
    def inputs(self) -> tuple[Variable | None, ...]:
        return tuple(map(variable_of, self._node.inputs))

    @property
    def outputs(self) -> tuple[Variable | None, ...]:
        return tuple(map(variable_of, self._node.outputs))

    def set_input(self, index: int, variable: Variable | None) -> None:
        """Read another variable at one place."""
        self._node.owner.set_input(self._node, index, value_of(variable))

    def set_output(self, index: int, variable: Variable) -> None:
        """Write another variable, which is in no graph yet, at one place."""
        outputs = list(self._node.outputs)
        if not 0 <= index < len(outputs):
            raise ModelError(
                f"operation {self.name!r} has {len(outputs)} outputs, so no output {index}"
            )
        outputs[index] = variable._value
        self._node.owner.set_outputs(self._node, outputs)

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
    def attributes(self) -> Attributes:
        return Attributes(self._node)

    def set_attribute(self, name: str, value: Any) -> None:
        self._node.owner.set_attribute(self._node, name, value)

    @property
    def platform(self) -> str | None:
        return self._node.metadata.get(PLATFORM)

    @platform.setter
    def platform(self, platform: str) -> None:
        self._node.owner.set_metadata(self._node, {**self._node.metadata, PLATFORM: platform})

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


NOWHERE = "tiered.compat.ppq: in no graph yet"
"""The name of the graph of an operation or variable that was made by its name."""


def _nowhere() -> Graph:
    """Return a graph for one operation or variable that is in no graph yet."""
    empty = onnx.helper.make_graph([], NOWHERE, [], [])
    return Model.from_proto(onnx.helper.make_model(empty)).main


def _free_node(name: str, op_type: str, attributes: Mapping[str, Any] | None) -> Node:
    if not op_type:
        raise ModelError(f"operation {name!r} needs a type, as in Operation({name!r}, 'Relu')")
    return _nowhere().add_node(op_type, (), (), attributes, name=name)


def _free_value(name: str, contents: np.ndarray[Any, Any] | None) -> Value:
    graph = _nowhere()
    source = graph.add_node("Identity", (), ()) if contents is None else None
    return graph.create_value(name, contents, source)


def _take_out(value: Value) -> None:
    """Let no node compute a value; the producer gets a new output in its place."""
    node = value.producer
    if node is None:
        return
    if value.is_used or value.is_graph_output:
        raise ModelError(f"{value.name!r} is read, so its source cannot be None")
    outputs = [surgery.new_value(node.owner) if each is value else each for each in node.outputs]
    node.owner.set_outputs(node, outputs)


def variable_of(value: Value | None) -> Variable | None:
    return None if value is None else Variable(value)


def value_of(variable: Variable | None) -> Value | None:
    return None if variable is None else variable._value


def node_of(operation: Operation | None) -> Node | None:
    return None if operation is None else operation._node
