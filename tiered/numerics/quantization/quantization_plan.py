"""The plan: which operators are quantised, where their operands are, and why others stay float."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from tiered.analysis.roles.model_roles import few_bit_roles
from tiered.analysis.roles.role import Roles, graphs_of
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.queries.multiply_adds import LAYERS
from tiered.numerics.precision.narrowing import IR_OF_DEFAULTS, why_no_weight
from tiered.numerics.precision.nothing import nothing_converted
from tiered.numerics.quantization.scheme import PRODUCTS, Scheme
from tiered.numerics.quantization.slots import ACTIVATIONS, ONE_SCALE, data_operands
from tiered.rewriter import Unable

Role = Literal["data", "weight"]
Keep = Callable[[Node], str]
"""Returns why a node stays float; empty if it need not."""

NO_PRODUCTS: Final = Unable("no Conv, ConvTranspose, Gemm or MatMul")
"""Why a model without products stays as it is."""

QUANTIZED_ALREADY: Final = "the model is quantised already"
"""Why products of a quantised model stay as they are: a second run changes nothing."""

_INTEGER_NODES: Final = frozenset(
    {"DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QuantizeLinear"}
)


@dataclass(frozen=True)
class Unit:
    """A product that is quantised.

    Attributes:
        node: it.
        roles: of its first two operands, by slot; one that is an output of a DequantizeLinear
            already is not listed.
        bias: the slot of a constant bias that becomes int32; None without.
    """

    node: Node
    roles: Mapping[int, Role]
    bias: int | None = None

    @property
    def data(self) -> list[Value]:
        """The operands that are quantised at run time."""
        return self._of("data")

    @property
    def weights(self) -> list[Value]:
        """The constant operands."""
        return self._of("weight")

    def _of(self, role: Role) -> list[Value]:
        chosen = (self.node.inputs[slot] for slot, each in self.roles.items() if each == role)
        return [value for value in chosen if value is not None]


@dataclass
class QuantizationPlan:
    """What is quantised.

    Attributes:
        units: the products.
        kept: the products that stay float, each with its reason.
        pairs: the values that get a QuantizeLinear and a DequantizeLinear, each with the nodes
            that read the dequantised value.
        groups: values with one scale: the representative of each value that shares one.
        others: for a target without floats, the operators besides products that it takes in
            integers, each with its operands and results of floats.
        floating: for such a target, the operators of floats that it does not take, with the reason.
        floors: values whose numbers are never 0 and must not become 0, each with their sign: they
            are at least one step away from it.
    """

    units: list[Unit]
    kept: list[tuple[Node, str]]
    pairs: dict[Value, dict[Node, None]] = field(default_factory=dict)
    groups: dict[Value, Value] = field(default_factory=dict)
    others: dict[Node, Sequence[Value]] = field(default_factory=dict)
    floating: list[tuple[Node, str]] = field(default_factory=list)
    floors: Mapping[Value, int] = field(default_factory=dict)

    def why_nothing(self) -> Unable | None:
        """Return why nothing is quantised; None if something is, or was before."""
        if self.units or self.others:
            return None
        if not self.kept:
            return NO_PRODUCTS
        if self.kept[0][1] == QUANTIZED_ALREADY:
            return None
        return nothing_converted("no product is quantised", self.kept)

    def group(self, value: Value) -> Value:
        """Return the representative of the values that share a scale with a value."""
        while self.groups.get(value, value) is not value:
            value = self.groups[value]
        return value


def plan_of(model: Model, scheme: Scheme, keep: Keep = lambda node: "") -> QuantizationPlan:
    """Decide what is quantised.

    Args:
        model: with inferred types.
        scheme: of the target.
        keep: what the user keeps.
    """
    products = [
        node for graph in graphs_of(model) for node in graph.topological_order() if is_layer(node)
    ]
    refusal = scheme.refusal(model.opset())
    if not refusal and is_quantized(model):
        refusal = QUANTIZED_ALREADY
    if refusal:
        return QuantizationPlan([], [(node, refusal) for node in products])
    roles = few_bit_roles(model)
    units, kept = list[Unit](), list[tuple[Node, str]]()
    for node in products:
        found = keep(node) or _unit(node, scheme, roles)
        if isinstance(found, Unit):
            units.append(found)
        else:
            kept.append((node, found))
    others = _others(model, scheme, keep, roles)
    # A layer of products that the target takes in integers is one of its other operators.
    kept = [(node, reason) for node, reason in kept if node not in others]
    done = {*others, *(node for node, _ in kept), *(unit.node for unit in units)}
    floating = [] if scheme.in_integers is None else _floating(model, scheme, done, roles)
    return placed(QuantizationPlan(units, kept, others=others, floating=floating), scheme)


def is_layer(node: Node) -> bool:
    """Return whether an operator is a sum of products, or made of such: most of the work is there.

    Only `PRODUCTS` are ever quantised as such.
    """
    is_einsum_of_one = node.op_type == "Einsum" and len(node.inputs) < 2
    return not node.domain and node.op_type in PRODUCTS | LAYERS and not is_einsum_of_one


def _floating(
    model: Model, scheme: Scheme, done: Collection[Node], roles: Roles
) -> list[tuple[Node, str]]:
    """Return the other operators of floats that stay float for a role or the target, and why."""
    nodes = (node for node in model.main.topological_order() if node not in done)
    of_floats = (node for node in nodes if any(
        value is not None and value.dtype == DataType.FLOAT and not value.is_constant
        for value in (*node.inputs, *node.outputs)
    ))  # fmt: skip
    found = (
        (node, str(roles[node]) if node in roles else scheme.why_float(node))
        for node in of_floats
        if not node.is_op("Constant")
    )
    return [(node, reason) for node, reason in found if reason]


def _others(model: Model, scheme: Scheme, keep: Keep, roles: Roles) -> dict[Node, Sequence[Value]]:
    """Return the operators besides products that the target takes in integers only."""
    if scheme.in_integers is None:
        return {}
    nodes = (node for node in model.main.topological_order() if node.op_type not in PRODUCTS)
    open_nodes = (node for node in nodes if node not in roles and not keep(node))
    found = {node: scheme.in_integers(node) for node in open_nodes}
    return {node: values for node, values in found.items() if values}


def without(plan: QuantizationPlan, nodes: Mapping[Node, str], scheme: Scheme) -> QuantizationPlan:
    """Return the plan with more nodes that stay float, each with its reason."""
    units = [unit for unit in plan.units if unit.node not in nodes]
    kept = [*plan.kept, *((unit.node, nodes[unit.node]) for unit in plan.units
                          if unit.node in nodes)]  # fmt: skip
    others = {node: values for node, values in plan.others.items() if node not in nodes}
    more = [(node, nodes[node]) for node in plan.others if node in nodes]
    floating = [*plan.floating, *more]
    left = QuantizationPlan(units, kept, others=others, floating=floating, floors=plan.floors)
    return placed(left, scheme)


def is_quantized(model: Model) -> bool:
    """Return whether data is quantised somewhere; weights in few bits do not count."""
    return any(
        node.op_type in _INTEGER_NODES or node.op_type.startswith("QLinear")
        for graph in graphs_of(model)
        for node in graph.topological_order()
    )


def _unit(node: Node, scheme: Scheme, known: Roles) -> Unit | str:
    if node.op_type in LAYERS:
        return f"there is no integer {node.op_type}"
    if node.op_type not in scheme.operators:
        return f"the target has no integer {node.op_type}"
    if node in known:
        return str(known[node])
    roles: dict[int, Role] = {}
    for slot in (0, 1):
        value = node.given(slot)
        if value.dtype != DataType.FLOAT:
            return operand_refusal(value)
        if is_dequantized(value):
            continue
        if value.owner.model.ir_version < IR_OF_DEFAULTS and (refusal := why_no_weight(value)):
            return refusal
        if value.is_constant and (refusal := weight_refusal(value)):
            return refusal
        roles[slot] = "weight" if value.is_constant else "data"
    if "data" not in roles.values():
        return "no operand is data"
    return Unit(node, roles, _bias_slot(node, roles))


def operand_refusal(value: Value) -> str:
    """Return why an operand that is not of float has no integer form, by its dtype."""
    name = "unknown type" if value.dtype is None else DataType(value.dtype).name.lower()
    return f"operands are of {name}, not of float"


def range_of_constant(value: Value) -> tuple[float, float] | None:
    """Return the ends of a constant; None for one without integer form."""
    if weight_refusal(value) or value.tensor is None:
        return None
    array = value.tensor.numpy()
    return float(array.min()), float(array.max())


def weight_refusal(value: Value) -> str:
    """Return why a constant has no integer form; empty if it has one."""
    tensor = value.tensor
    if tensor is None or tensor.is_sparse:
        return "the weight is sparse"
    if not tensor.size:
        return "the weight is empty"
    return "" if np.isfinite(tensor.numpy()).all() else "the weight has NaN or Inf"


def is_dequantized(value: Value) -> bool:
    """Return whether a value is the output of a DequantizeLinear."""
    return value.producer is not None and value.producer.op_type == "DequantizeLinear"


def _bias_slot(node: Node, roles: Mapping[int, Role]) -> int | None:
    """Return the slot of a bias that kernels add in int32."""
    bias = node.input(2)
    if roles != {0: "data", 1: "weight"} or bias is None or bias.tensor is None:
        return None
    if bias.tensor.is_sparse:
        return None
    if node.op_type == "Gemm" and (node.attr("alpha"), node.attr("beta")) != (1.0, 1.0):
        return None
    is_vector = len(bias.tensor.shape) == 1 and bias.tensor.size == node.output.dim(
        1 if node.op_type != "Gemm" else -1
    )
    return 2 if is_vector and np.isfinite(bias.tensor.numpy()).all() else None


# --- where values are quantised -------------------------------------------------------------------


def placed(plan: QuantizationPlan, scheme: Scheme) -> QuantizationPlan:
    """Add the pairs of QuantizeLinear and DequantizeLinear that the units need."""
    for unit in plan.units:
        for value in unit.data:
            plan.pairs.setdefault(value, {})[unit.node] = None
    if scheme.in_integers is None:
        for value, readers in tuple(plan.pairs.items()):
            source = _moved_output(value) if readers.keys() >= set(value.readers) else None
            if source is not None:
                output, reader = source
                plan.pairs.setdefault(output, {})[reader] = None
                _unify(plan, [output, value])
    results = _integer_results(plan, scheme)
    integer = set(results)
    for value in results:
        readers = _readers(value, scheme)
        if not readers and scheme.in_integers is None:
            integer.discard(value)
            continue
        plan.pairs.setdefault(value, {}).update(readers)
    _place_inside(plan, integer, scheme)
    for node, values in plan.others.items():
        _place_around(plan, node, values, scheme)
    return plan


_PROPAGATES: Final = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators past which onnxruntime moves a QuantizeLinear, towards the input."""


def _moved_output(value: Value) -> tuple[Value, Node] | None:
    """Return the output of the model that a value is moved from, and the node that reads it.

    onnxruntime would quantise the output itself: it moves the QuantizeLinear of the value to where
    the movement begins, and takes its result for the output. A pair there already keeps it from
    that. Keys and values of a cache are such outputs.
    """
    node, is_alone = value.producer, not value.is_graph_output
    while is_alone and node is not None and not node.domain and node.op_type in _PROPAGATES:
        source = node.given(0)
        if not source.owner.is_main:
            return None
        if source.is_graph_output:
            return source, node
        node, is_alone = source.producer, source.has_one_user
    return None


_NO_READERS: Final = frozenset({"Shape", "Size", "QuantizeLinear", "If", "Loop", "Scan"})


def _readers(value: Value, scheme: Scheme) -> dict[Node, None]:
    """Return the nodes that read a value as it is when dequantised."""
    found = (use.node for use in value.users if use.node.op_type not in _NO_READERS)
    is_strict = scheme.in_integers is not None
    return {node: None for node in found if is_strict or not _is_misread(node)}


def _is_misread(node: Node) -> bool:
    """Return whether onnxruntime's QLinearAveragePool computes other numbers than a node.

    With both attributes it divides by the size of the whole window, including the part beyond the
    padding; it has no dilations. onnxruntime makes it of each AveragePool between Q/DQ.
    """
    if not node.is_op("AveragePool"):
        return False
    is_dilated = any(step != 1 for step in node.attr("dilations") or ())
    return is_dilated or bool(node.attr("ceil_mode", 0) and node.attr("count_include_pad", 0))


def _integer_results(plan: QuantizationPlan, scheme: Scheme) -> list[Value]:
    """Return the results that are quantised because their kernels have integer ones only."""
    results: list[Value] = []
    for unit in plan.units:
        value = activated(unit.node.output)
        may_be = scheme.in_integers is not None or not value.is_graph_output
        if unit.node.op_type in scheme.integer_results and may_be:
            results.append(value)
    return results


def activated(value: Value) -> Value:
    """Return the result of the activation that alone reads a value; else the value."""
    readers = value.readers
    if value.has_one_user and not readers[0].domain and readers[0].op_type in ACTIVATIONS:
        return readers[0].output if readers[0].inputs[0] is value else value
    return value


def _place_inside(plan: QuantizationPlan, integer: set[Value], scheme: Scheme) -> None:
    """Quantise movement of elements and sums between quantised values.

    A result of integer kernels, of movement of such, or of their sums is integer itself.
    """
    graphs = dict.fromkeys(unit.node.owner for unit in plan.units)
    for graph in graphs:
        for node in graph.topological_order():
            moved = data_operands(node)
            is_sum = node.is_op("Add")
            operands = [each for each in node.inputs if each is not None] if is_sum else moved
            if not operands or any(each not in integer for each in operands):
                continue
            output = activated(node.output) if is_sum else node.outputs[0]
            if output is None or (is_sum and output not in plan.pairs):
                continue
            for each in operands:
                plan.pairs.setdefault(each, {})[node] = None
            for result in [output] if is_sum else node.outputs:
                if result is None or result.dtype != DataType.FLOAT or result.is_graph_output:
                    continue
                plan.pairs.setdefault(result, {}).update(_readers(result, scheme))
                integer.add(result)
                if not is_sum:
                    _unify(plan, [result, *operands])


def _place_around(
    plan: QuantizationPlan, node: Node, values: Sequence[Value], scheme: Scheme
) -> None:
    """Quantise the operands and results of an operator, unless it is a part of its producer's."""
    producer = node.producer(0)
    made = None if producer is None else producer.outputs[0]
    if made is not None and activated(made) is node.outputs[0]:
        return
    ends = [activated(value) if value is node.outputs[0] else value for value in values]
    for value, end in zip(values, ends, strict=True):
        if value.producer is node:
            plan.pairs.setdefault(end, {}).update(_readers(end, scheme))
        else:
            plan.pairs.setdefault(value, {})[node] = None
    if node.op_type in ONE_SCALE:
        _unify(plan, ends)


def _unify(plan: QuantizationPlan, values: Iterable[Value]) -> None:
    first, *others = (plan.group(value) for value in values)
    for other in others:
        if other is not first:
            plan.groups[other] = first
