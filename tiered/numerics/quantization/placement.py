"""The edit: QuantizeLinear and DequantizeLinear where the plan has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tiered.graph import Graph, Model, Node, Tensor, Use, Value
from tiered.numerics.quantization.quantization_plan import QuantizationPlan, Unit
from tiered.numerics.quantization.rounding import Rounding
from tiered.numerics.quantization.scales import (
    Array,
    Parameters,
    Weight,
    bias_of,
    least_scales,
    weight_of,
)
from tiered.numerics.quantization.scheme import Scheme
from tiered.numerics.quantization.weight_pairs import orders_of


class PlacedUnit(NamedTuple):
    """What a unit is stored as.

    Attributes:
        dtypes: of its operands that are quantised, data first.
        data: the parameters of its data.
        scales: of its weight; empty without one.
    """

    dtypes: tuple[str, ...]
    data: tuple[Parameters, ...]
    scales: tuple[float, ...]


def channel_axis(node: Node, slot: int, rank: int) -> int | None:
    """Return the axis of a weight that the result has too; None where one scale is needed."""
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        # The channels of each group follow one another on axis 1.
        return 1 if node.attr("group") == 1 else None
    if slot == 0 or rank != 2:
        return None
    if node.op_type == "Gemm":
        return 0 if node.attr("transB") else 1
    return 1


def place(
    model: Model,
    plan: QuantizationPlan,
    scheme: Scheme,
    parameters: Mapping[Value, Parameters],
    rounding: Rounding | None = None,
) -> dict[str, PlacedUnit]:
    """Quantise what a plan has; return what each product is stored as, by its output's name.

    Args:
        model: it is edited.
        plan: each data operand of a unit is one of its pairs.
        scheme: of the target.
        parameters: of each value that gets a pair.
        rounding: rounds weights for data; None to round to nearest.
    """
    return _Placement(model, scheme, parameters, rounding).run(plan)


class _Placement:
    def __init__(
        self,
        model: Model,
        scheme: Scheme,
        parameters: Mapping[Value, Parameters],
        rounding: Rounding | None,
    ) -> None:
        self.opset = model.opset()
        self.scheme = scheme
        self.parameters = parameters
        self.rounding = rounding
        self.weights: dict[tuple[object, ...], tuple[Value, Weight]] = {}
        self.biases: dict[tuple[Value, bytes], Value] = {}

    def run(self, plan: QuantizationPlan) -> dict[str, PlacedUnit]:
        """Edit the model."""
        stored = {unit.node.output.name: self._store(unit) for unit in plan.units}
        for value, readers in plan.pairs.items():
            self._pair(value, readers)
        for value, sign in plan.floors.items():
            if value in plan.pairs:
                self._raise(value, sign)
        return stored

    def _pair(self, value: Value, readers: Mapping[Node, None]) -> None:
        found = self.parameters[value]
        scale = np.array(found.scale, np.float32)
        zero = np.array(found.zero, found.dtype.numpy)
        uses = [use for use in value.users if use.node in readers]
        if value.tensor is not None:
            codes = found.codes(value.tensor.numpy()).astype(found.dtype.numpy)
            _redirect(uses, dequantized(value.owner, value.name, Weight(codes, scale, zero, None)))
        elif (
            value.is_graph_output
            and self.scheme.in_integers is not None
            and value.producer is not None  # an input that is an output too is never rounded
        ):
            insert_pair_before_output(value, scale, zero)
        else:
            insert_pair(value, uses, scale, zero)

    def _raise(self, value: Value, sign: int) -> None:
        """Let the readers of a quantised value read at least one step, in integers too."""
        (quantize,) = (each for each in value.readers if each.is_op("QuantizeLinear"))
        (dequantize,) = quantize.output.readers
        found, graph, uses = self.parameters[value], value.owner, list(dequantize.output.users)
        scale = np.array(found.scale, np.float32)
        step, zero = (np.array(code, found.dtype.numpy) for code in (found.zero + sign, found.zero))
        bound = dequantized(graph, f"{value.name}_least", Weight(step, scale, zero, None))
        raised = (graph.op.Max if sign > 0 else graph.op.Min)(dequantize.output, bound)
        _redirect(uses, raised)
        insert_pair(raised, uses, scale, zero)

    # --- constants --------------------------------------------------------------------------------

    def _store(self, unit: Unit) -> PlacedUnit:
        scales: tuple[float, ...] = ()
        node, data = unit.node, tuple(self.parameters[value] for value in unit.data)
        dtypes = [each.dtype.name.lower() for each in data]
        for slot, role in unit.roles.items():
            if role == "data":
                continue
            value = node.given(slot)
            x, weight = self._weight(node, slot, value, self._least(unit))
            node.owner.set_input(node, slot, x)
            scales = tuple(weight.scales.ravel().tolist())
            dtypes.append(weight.codes.dtype.name)
            if unit.bias is not None:
                self._set_bias(unit, weight)
        return PlacedUnit(tuple(dtypes), data, scales)

    def _least(self, unit: Unit) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None:
        """Return the least scales that the bias of a unit allows; None if any do."""
        if unit.bias is None:
            return None
        bias, data = unit.node.given(unit.bias), unit.node.given(0)
        assert bias.tensor is not None
        return least_scales(bias.tensor.numpy(), self.parameters[data].scale)

    def _weight(
        self,
        node: Node,
        slot: int,
        value: Value,
        least: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None,
    ) -> tuple[Value, Weight]:
        tensor = value.tensor
        assert tensor is not None
        axis = None
        if self.scheme.has_channels(node.op_type, self.opset):
            axis = channel_axis(node, slot, len(tensor.shape))
        if least is not None and axis is None:
            least = least.max(keepdims=True)
        unsigned = node.op_type in self.scheme.unsigned_weights
        array = tensor.numpy()
        is_limited = self.scheme.keeps_pairs and not unsigned
        orders = orders_of(node, slot, array.ndim) if is_limited else []
        weight = weight_of(array, axis, self.scheme, unsigned=unsigned, least=least, orders=orders)
        assert weight is not None, "a weight that is not finite is in no plan"
        key = value, axis, unsigned, tuple(orders), weight.scales.tobytes()
        if key not in self.weights:
            if self.rounding is not None and slot == 1:
                weight = self.rounding.of(node, value, weight, orders)
            self.weights[key] = dequantized(value.owner, value.name, weight), weight
        return self.weights[key]

    def _set_bias(self, unit: Unit, weight: Weight) -> None:
        node, slot = unit.node, unit.bias
        assert slot is not None
        bias, data = node.given(slot), node.given(0)
        assert bias.tensor is not None
        codes, steps = bias_of(
            bias.tensor.numpy(), self.parameters[data].scale, weight.scales.ravel()
        )
        key = bias, steps.tobytes()
        if key not in self.biases:
            axis = None if weight.axis is None else 0
            steps = steps if axis == 0 else steps[:1].reshape(())
            stored = Weight(codes, steps, np.zeros(steps.shape, np.int32), axis)
            self.biases[key] = dequantized(bias.owner, bias.name, stored)
        node.owner.set_input(node, slot, self.biases[key])


def insert_pair(
    value: Value, uses: Iterable[Use], scale: Array, zero: Array, axis: int | None = None
) -> None:
    """Let uses of a value read it from a QuantizeLinear and a DequantizeLinear.

    Args:
        value: of floats.
        uses: of it, by nodes at any depth.
        scale, zero: one number each, or a vector for an axis.
        axis: None for one scale.
    """
    graph, name, attributes = value.owner, value.name, axis_attribute(axis)
    step = graph.constant(scale, f"{name}_scale")
    middle = graph.constant(Tensor.of(zero), f"{name}_zero_point")
    q = graph.op.QuantizeLinear(value, step, middle, name=f"{name}_QuantizeLinear", **attributes)
    x = graph.op.DequantizeLinear(q, step, middle, name=f"{name}_DequantizeLinear", **attributes)
    _redirect(uses, x)


def insert_pair_before_output(value: Value, scale: Array, zero: Array) -> None:
    """Make a graph output, with all its uses, the result of a pair; it keeps its name.

    Args:
        value: of floats, the output of a node.
        scale, zero: one number each.
    """
    graph, node = value.owner, value.producer
    assert node is not None
    insert_pair(value, (), scale, zero)
    (quantize,) = (reader for reader in value.readers if reader.is_op("QuantizeLinear"))
    (dequantize,) = quantize.output.readers
    inner = dequantize.output
    graph.exchange_outputs(node, node.outputs.index(value), dequantize, 0)
    graph.set_input(quantize, 0, inner)


def _redirect(uses: Iterable[Use], value: Value) -> None:
    for use in uses:
        use.node.owner.set_input(use.node, use.slot, value)


def axis_attribute(axis: int | None) -> dict[str, Any]:
    """Return the attribute of Q/DQ for the axis of their scales; empty for one scale."""
    return {} if axis is None else {"axis": axis}


def dequantized(graph: Graph, name: str, weight: Weight) -> Value:
    """Return a DequantizeLinear of a constant."""
    codes = graph.constant(Tensor.of(weight.codes), f"{name}_quantized")
    scale = graph.constant(weight.scales, f"{name}_scale")
    zero = graph.constant(weight.zeros, f"{name}_zero_point")
    label, attributes = f"{name}_DequantizeLinear", axis_attribute(weight.axis)
    return graph.op.DequantizeLinear(codes, scale, zero, outputs=1, name=label, **attributes)
