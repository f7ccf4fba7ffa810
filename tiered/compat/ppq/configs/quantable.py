"""Nodes with configs: bake their parameters, return them to float, and quantise them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tiered.analysis.roles.role import graphs_of
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.states import QuantizationStates
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.graph import DataType, Model, Node, Tensor, Value
from tiered.numerics.quantization.quantization_plan import weight_refusal
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

Array = np.ndarray[Any, Any]
QuantFunction = Callable[[Array, TensorQuantizationConfig], Array]
"""Returns numbers as they are after quantisation."""

_KEY: Final = "tiered.compat.ppq.configs.quantable"
_BAKED: Final = {
    QuantizationStates.ACTIVATED: QuantizationStates.BAKED,
    QuantizationStates.PASSIVE: QuantizationStates.PASSIVE_BAKED,
}


def quantized_numbers(array: Array, config: TensorQuantizationConfig) -> Array:
    """Return numbers as QuantizeLinear and DequantizeLinear leave them, bit for bit."""
    return config.numbers(config.codes(array))


@dataclass(eq=False)
class QuantableNode:
    """A node with a config for each operand and result; `quantize_node` makes it.

    Attributes:
        node: it.
        config: its configs.
        stored: what its parameters were before they were baked.
    """

    node: Node
    config: OperationQuantizationConfig
    stored: dict[Value, Tensor] = field(default_factory=dict)
    _shelved: dict[Value, Tensor] = field(default_factory=dict)

    def places(self) -> Iterator[tuple[TensorQuantizationConfig, Value | None]]:
        """Yield each config with its operand or result."""
        check_places(self.node, self.config)
        values = (*self.node.inputs, *self.node.outputs)
        yield from zip(self.config, values, strict=True)

    def parameters(self) -> Iterator[tuple[int, TensorQuantizationConfig, Value]]:
        """Yield the slot, the config and the value of each constant operand."""
        for slot, (config, value) in enumerate(self.places()):
            if value is not None and value.is_initializer and not value.is_overridable:
                yield slot, config, value

    def follow_undo(self) -> None:
        """Return states to what they were before edits of the parameters that were undone."""
        values = (*self.node.inputs, *self.node.outputs)
        for config, value in zip(self.config, values, strict=False):
            if value in self.stored and value.tensor is self.stored[value]:
                config.unbake()

    def store(self) -> None:
        """Keep the parameters as they are now, to return to them; else `bake` does it.

        Raises:
            ModelError: one is baked, so the original numbers would be lost.
        """
        for _, config, value in self.parameters():
            if config.state.is_baked or value in self._shelved:
                raise ModelError(
                    f"parameter {value.name!r} of {self.node.label!r} is baked; what it was "
                    "before is stored already"
                )
        values = (value for _, _, value in self.parameters())
        self.stored = {value: value.tensor for value in values if value.tensor is not None}

    def bake(self, quantize: QuantFunction = quantized_numbers) -> None:
        """Replace the parameters that are active by what they are after quantisation.

        ACTIVATED becomes BAKED, and PASSIVE becomes PASSIVE_BAKED.

        Raises:
            ModelError: a parameter has other users, or no integer form; nothing changes.
        """
        baked = [
            (config, value, self._quantized(value, config, quantize))
            for _, config, value in self.parameters()
            if config.state in _BAKED
        ]
        for config, value, numbers in baked:
            before = self._exchange(value, Tensor.of(numbers))
            self.stored.setdefault(value, before)
            config.state = _BAKED[config.state]

    def _quantized(
        self, value: Value, config: TensorQuantizationConfig, quantize: QuantFunction
    ) -> Array:
        if not value.has_one_user:
            raise ModelError(
                f"parameter {value.name!r} of {self.node.label!r} has other users; run the pass "
                "format_parameter first, which copies it for each"
            )
        if refusal := weight_refusal(value):
            raise ModelError(f"parameter {value.name!r} of {self.node.label!r}: {refusal}")
        array = value.const
        assert array is not None
        numbers = quantize(array, config)
        if (numbers.dtype, numbers.shape) != (array.dtype, array.shape):
            raise ModelError(
                f"parameter {value.name!r} of {self.node.label!r} is {array.dtype} of shape "
                f"{list(array.shape)}; the function returned {numbers.dtype} of "
                f"{list(numbers.shape)}"
            )
        return numbers

    def dequantize(self, *, parameter_only: bool = False) -> None:
        """Return all tensors to float, or the parameters only; a second call changes nothing."""
        parameters = {slot: value for slot, _, value in self.parameters()}
        for slot, (config, _) in enumerate(self.places()):
            if parameter_only and slot not in parameters:
                continue
            value = parameters.get(slot)
            if config.state.is_baked and value in self.stored:
                self._shelved[value] = self._exchange(value, self.stored[value])
            config.dequantize()

    def restore(self) -> None:
        """Undo `dequantize`: states and baked numbers are what they were."""
        for config, value in self.places():
            if value in self._shelved:
                self._exchange(value, self._shelved.pop(value))
            config.restore()

    @staticmethod
    def _exchange(value: Value, contents: Tensor) -> Tensor:
        """Set the contents of a parameter; return those before."""
        before = value.tensor
        assert before is not None
        value.owner.set_constant(value, contents)
        return before


def quantize_node(node: Node, config: OperationQuantizationConfig) -> QuantableNode:
    """Give a node configs.

    Raises:
        ModelError: it has configs already, a config is missing, or a tensor that is not of
            float32 would be quantised.
    """
    if quantable_of(node) is not None:
        raise ModelError(f"node {node.label!r} is quantised already; change its configs")
    check_places(node, config)
    made = QuantableNode(node, config)
    node.scratch[_KEY] = made
    return made


def quantable_of(node: Node) -> QuantableNode | None:
    """Return the configs of a node; None if it has none."""
    found = node.scratch.get(_KEY)
    if not isinstance(found, QuantableNode):
        return None
    found.follow_undo()
    return found


def copy_notes(pairs: Iterable[tuple[Node, Node]]) -> None:
    """Give nodes of a copied model the configs and the notes of the nodes that they are copies of.

    Args:
        pairs: the nodes, each with its copy.
    """
    copies: dict[TensorQuantizationConfig, TensorQuantizationConfig] = {}
    for node, twin in pairs:
        twin.scratch.update((key, each) for key, each in node.scratch.items() if key != _KEY)
        found = quantable_of(node)
        if found is None:
            continue
        config = found.config.copy_among(copies)
        there = (*twin.inputs, *twin.outputs)
        values = dict(zip((*node.inputs, *node.outputs), there, strict=True))
        twin.scratch[_KEY] = QuantableNode(
            twin,
            config,
            {own: tensor for value, tensor in found.stored.items() if (own := values[value])},
            {own: tensor for value, tensor in found._shelved.items() if (own := values[value])},
        )


def forget_configs(node: Node) -> None:
    """Take the configs from a node; the model stays as it is."""
    node.scratch.pop(_KEY, None)


def quantable_nodes(model: Model) -> list[QuantableNode]:
    """Return the nodes with configs, in topological order."""
    nodes = (node for graph in graphs_of(model) for node in graph.topological_order())
    return [found for node in nodes if (found := quantable_of(node)) is not None]


def dequantize_model(model: Model) -> None:
    """Return all nodes with configs to float."""
    for each in quantable_nodes(model):
        each.dequantize()


def restore_model(model: Model) -> None:
    """Undo `dequantize` for all nodes with configs."""
    for each in quantable_nodes(model):
        each.restore()


def check_places(node: Node, config: OperationQuantizationConfig) -> None:
    """Raise if the configs do not fit the operands and results of a node.

    Raises:
        ModelError: the numbers differ, or a tensor that is absent or not of float32 has a config
            that quantises it.
    """
    for what, configs, values in (
        ("input", config.input_quantization_config, node.inputs),
        ("output", config.output_quantization_config, node.outputs),
    ):
        if len(configs) != len(values):
            raise ModelError(
                f"node {node.label!r} has {counted(len(values), what)}, the config {len(configs)}; "
                "write one for each, also for an absent one"
            )
        for at, (each, value) in enumerate(zip(configs, values, strict=True)):
            if each.state.is_float or (value is not None and value.dtype == DataType.FLOAT):
                continue
            found = "absent" if value is None else f"{value.name!r}, which is not of float32"
            raise ModelError(
                f"{what} {at} of node {node.label!r} is {found}; its state is {each.state.name}, "
                "but must be SOI or FP32"
            )
