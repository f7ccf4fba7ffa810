"""Integer analysis: which tensors hold integers only, of how many bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tiered.graph import Model, Tensor
from tiered.graph.core.dtypes import DataType
from tiered.graph.core.graph import Graph
from tiered.graph.core.node import Node
from tiered.graph.core.value import Value
from tiered.graph.intervals.integer_type import BIPOLAR, IntegerType, integer_type, integers_within
from tiered.graph.intervals.interval import Interval, is_integer, of_tensor
from tiered.graph.intervals.range_analysis import UNKNOWN_DIMS, RangeAnalysis, Ranges, ranges
from tiered.graph.intervals.rules import QONNX_DOMAINS, RangeCall, quantized_integers
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.op_traits import CASTS, MAX_POOLS, MOVES_FIRST, RING, SELECTS_EXTREMES

_SELECTING: Final = MOVES_FIRST | SELECTS_EXTREMES | {"Compress", "Concat", "TopK"}
"""Operators that select: each element of the first output is an element of a data operand."""

_PRESERVING: Final = (
    _SELECTING
    | RING
    | {*CASTS, "Abs", "Clip", "Relu"}
    | {"Conv", "CumSum", "MatMul", "ReduceSum"}
    | {"Pad", "Where"}
)
"""Operators whose result is of integers if all float operands are, or absent."""

_OF_ONE_OPERAND: Final = MOVES_FIRST | MAX_POOLS | {*CASTS, "Compress"}
"""Operators with one operand of data, whose elements are those of the result."""


_OF_SIDES: Final = (*CASTS, "Mul", "Neg", "Where")
"""Other operators that make -1 or 1 of them."""


class IntegerTypes:
    """The integer types of the values of a model."""

    def __init__(self, known: Mapping[Value, IntegerType]) -> None:
        self._known = known

    def __getitem__(self, value: Value) -> IntegerType | None:
        """Return the type of the integers of a value; None where that is not proven."""
        found = self._known.get(value)
        return _of_constant(value.tensor) if found is None else found


@dataclass(frozen=True)
class IntegerAnalysis:
    """What integer types are computed from: `model.analysis(integer_types)`.

    A tensor of floats has an integer type if all its elements are integers between finite limits,
    or NaN, by the definitions of its operators: kernels that compute a convolution by way of a
    transform may be off by rounding. Multiples of one scale have a scaled type. A tensor of a dtype
    of integers always has a type, often a smaller one than its dtype.

    Attributes:
        inputs: the types that the user declares of graph inputs, by name.
        ranges: the range analysis with which the limits are found.
    """

    inputs: tuple[tuple[str, IntegerType], ...] = ()
    ranges: RangeAnalysis = ranges

    def with_inputs(self, **names: str) -> IntegerAnalysis:
        """Return the analysis with declared types of inputs: `with_inputs(x="int3")`.

        Raises:
            UsageError: a name is no integer type.
        """
        types = {name: integer_type(given) for name, given in names.items()}
        limits = {name: Interval(found.low, found.high) for name, found in types.items()}
        within = self.ranges.with_inputs({**dict(self.ranges.inputs), **limits})
        return IntegerAnalysis(tuple(sorted({**dict(self.inputs), **types}.items())), within)

    def __call__(self, model: Model) -> IntegerTypes:
        """Compute the types; `model.analysis` keeps them until the next edit."""
        return _Types(model, self).run()


integer_types: Final = IntegerAnalysis()


class _Types:
    def __init__(self, model: Model, given: IntegerAnalysis) -> None:
        self.model = model
        self.given = dict(given.inputs)
        self.ranges: Ranges = model.analysis(given.ranges)
        self.known: dict[Value, IntegerType] = {}
        self.constants: dict[Value, IntegerType | None] = {}

    def run(self) -> IntegerTypes:
        for value in self.model.main.inputs:
            declared = self.given.get(value.name)
            if declared is not None:
                self.known[value] = declared
        for graph in self.model.graphs():
            self._visit(graph)
        return IntegerTypes(self.known)

    def _visit(self, graph: Graph) -> None:
        for value in graph.inputs:
            self._set(value, self._of(value))
        for node in graph.topological_order():
            for place, result in enumerate(node.outputs):
                is_data = place == 0 or node.is_op("Split")
                if result is not None:
                    found = self._of(result) or (self._computed(node) if is_data else None)
                    self._set(result, found)

    def _set(self, value: Value, found: IntegerType | None) -> None:
        if found is not None:
            self.known[value] = found

    def _of(self, value: Value) -> IntegerType | None:
        """Return the type that is known, or follows from the value alone."""
        if value in self.known:
            return self.known[value]
        if value.is_constant:
            if value not in self.constants:
                self.constants[value] = _of_constant(value.tensor)
            return self.constants[value]
        return integers_within(self.ranges[value]) if is_integer(value.dtype) else None

    def _computed(self, node: Node) -> IntegerType | None:
        """Return the type of the first output of a node, of floats."""
        output = next(value for value in node.outputs if value is not None)
        if node.parameter_reason is not None or node.bodies:
            return None
        rule = INTEGERS.of(node)
        if rule is None or self.model.function(node.domain, node.op_type) is not None:
            return None
        return rule(self, node, output) if node.domain or node.schema is not None else None

    def within_range(self, node: Node, output: Value) -> IntegerType | None:
        """Return the type of a result that is rounded."""
        return integers_within(self.ranges[output])

    def preserved(self, node: Node, output: Value) -> IntegerType | None:
        """Return the type of the result of operands of integer types."""
        operands = self._data_types(node)
        types = [each for each in operands if each is not None]
        return self._combined(node, types, output) if types and types == operands else None

    def _combined(
        self, node: Node, types: Sequence[IntegerType], output: Value
    ) -> IntegerType | None:
        """Return the type of the result of operands of integer types."""
        if any(each.is_scaled for each in types):
            return types[0] if node.op_type in _OF_ONE_OPERAND else None
        found = integers_within(self.ranges[output])
        keeps_sides = node.op_type in _SELECTING or node.op_type in _OF_SIDES
        if found is not None and keeps_sides and all(each.is_bipolar for each in types):
            return BIPOLAR
        return found

    def _data_types(self, node: Node) -> list[IntegerType | None]:
        """Return the types of the operands that are data."""
        if node.op_type in _OF_ONE_OPERAND:
            return [self._of(node.given(0))]
        # Operands that are attributes in old opsets are constants here.
        values = [value for value in node.operands if value is not None]
        return [self._of(value) for value in values if not is_integer(value.dtype)]

    # --- quantisers -------------------------------------------------------------------------------

    def _call(self, node: Node) -> RangeCall:
        operands = [None if value is None else self.ranges[value] for value in node.inputs]
        return RangeCall(node, operands, UNKNOWN_DIMS)

    def quantized(self, node: Node) -> IntegerType | None:
        """Return the type of the result of a Quant, BipolarQuant or Trunc."""
        found = quantized_integers(self._call(node))
        if found is None or found.may_be_inf:
            return None
        is_bipolar = node.op_type == "BipolarQuant" or (
            node.op_type == "Quant"
            and bool(node.attr("signed", True))
            and self._number_of(node.given(3)) == 1
        )
        scale = node.given(4 if len(node.inputs) == 7 else 1)
        zero = None if node.op_type == "BipolarQuant" else node.given(2)
        if zero is not None and self._is_shifting(node, zero):
            return None
        if self._of(scale) is None:
            offset = 0 if zero is None else self._number_of(zero)
            if offset is None:
                return None
            low, high = int(found.low) - int(offset), int(found.high) - int(offset)
            plain = BIPOLAR if is_bipolar and not offset else IntegerType(low, high)
            return plain.scaled
        is_unit = scale.is_constant and abs(self._number_of(scale) or 0) == 1
        if is_bipolar and is_unit and (zero is None or self._number_of(zero) == 0):
            return BIPOLAR
        return IntegerType(int(found.low), int(found.high))

    def _is_shifting(self, node: Node, zero: Value) -> bool:
        """Return whether a zero point may move the result off the integers."""
        if len(node.inputs) == 7:
            return self._number_of(zero) != 0
        return self._of(zero) is None

    def counted(self, node: Node) -> IntegerType | None:
        """Return the type of the result of a MultiThreshold."""
        scale, bias = float(node.attr("out_scale", 1.0)), float(node.attr("out_bias", 0.0))
        found = self.ranges[node.output]
        if found.may_be_inf:
            return None
        if scale.is_integer() and bias.is_integer():
            return integers_within(found)
        if bias or not scale:
            return None
        thresholds = node.input(1)
        count = None if thresholds is None else thresholds.dim(-1)
        return IntegerType(0, count).scaled if isinstance(count, int) else None

    def dequantized(self, node: Node) -> IntegerType | None:
        """Return the type of the result of a DequantizeLinear."""
        q, scale, zero = (node.input(place) for place in range(3))
        if q is None or scale is None or not is_integer(q.dtype):
            return None
        found = self.ranges[q]
        shift = Interval(0, 0) if zero is None else self.ranges[zero]
        low, high = int(found.low) - int(shift.high), int(found.high) - int(shift.low)
        plain = IntegerType(low, high)
        return plain if self._of(scale) is not None else plain.scaled

    def _number_of(self, value: Value) -> float | None:
        """Return the one number that a value is."""
        found = self.ranges[value]
        return found.low if found.low == found.high and not found.may_be_nan else None


def _in_steps(rule: Callable[[_Types, Node], IntegerType | None]) -> Rule:
    """Return the rule of an operator that quantises, to integers or to multiples of a scale."""

    def stepped(types: _Types, node: Node, output: Value) -> IntegerType | None:
        found = rule(types, node)
        if found is None or found.is_scaled or found.is_bipolar:
            return found
        return types.within_range(node, output)

    return stepped


Rule = Callable[[_Types, Node, Value], IntegerType | None]
"""Returns the type of the first output that is there, of floats; None if it may be of others."""

INTEGERS: Final[Aspect[Rule]] = Aspect("integer")

INTEGERS.rule("Ceil", "Floor", "Round", "Sign")(_Types.within_range)
INTEGERS.rule(*_PRESERVING)(_Types.preserved)
INTEGERS.rule("DequantizeLinear", domain=("", "com.microsoft"))(_in_steps(_Types.dequantized))
INTEGERS.rule("BipolarQuant", "Quant", "Trunc", domain=QONNX_DOMAINS)(_in_steps(_Types.quantized))
INTEGERS.rule("MultiThreshold", domain=QONNX_DOMAINS)(_in_steps(_Types.counted))


_BLOCK: Final = 1 << 20
"""So many elements of a constant are looked at together."""


def _of_constant(tensor: Tensor | None) -> IntegerType | None:
    """Return the type of a constant of integers, which may be stored as floats."""
    if tensor is None or tensor.is_sparse or not DataType(tensor.dtype).name.startswith(_NUMBERS):
        return None
    flat = tensor.numpy().ravel()
    blocks = [flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)]
    if not all(map(_is_whole, blocks)):
        return None
    found = of_tensor(tensor)
    if found.is_within(-1, 1) and found.low < 0 and not any((block == 0).any() for block in blocks):
        return BIPOLAR
    return integers_within(found)


_NUMBERS: Final = ("BFLOAT", "BOOL", "DOUBLE", "FLOAT", "INT", "UINT")


def _is_whole(block: np.ndarray[Any, Any]) -> bool:
    """Return whether all numbers are integers."""
    numbers = block.astype(np.float32) if block.dtype.itemsize < 4 else block
    return bool((np.isfinite(numbers) & (numbers == np.rint(numbers))).all())
