"""Emulation: a model of 16-bit floats whose nodes compute in float and round what they return.

onnxruntime has few kernels of float16 on the CPU, and hardly any of bfloat16. It keeps Casts that
are in the model, so that this shows overflow and rounding of each value. Sums inside of an operator
are those of float, as most accelerators have them; onnx.reference shows those of the dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tiered.analysis.roles.role import graphs_of
from tiered.graph import DataType, Graph, Model, Node, Value
from tiered.graph.queries.formals import formal_of, output_formal_of
from tiered.graph.queries.op_traits import BODIES
from tiered.numerics.precision.variables import DTYPE_ATTRIBUTES

_LOW: Final = (DataType.FLOAT16, DataType.BFLOAT16)

_AS_THEY_ARE: Final = frozenset({*BODIES, *DTYPE_ATTRIBUTES, "CastLike", "Constant"})
"""Operators that convert, or that onnxruntime runs with any dtype."""


class _Widened(NamedTuple):
    """A node that is to compute in float.

    Attributes:
        operands: the places of the operands of 16 bits.
        outputs: the outputs of 16 bits, and their dtypes.
    """

    node: Node
    operands: tuple[int, ...]
    outputs: tuple[tuple[int, int], ...]


def emulate(model: Model) -> None:
    """Let each operator of ONNX that has operands of 16-bit floats compute in float."""
    model.refresh_types()
    planned = [each for graph in graphs_of(model) for each in _plan(graph)]
    for widened in planned:
        for place, dtype in widened.outputs:
            _round(widened.node, place, dtype)
    wide = dict[Value, Value]()
    for node, operands, _ in planned:
        for place in operands:
            value = node.given(place)
            if value not in wide:
                wide[value] = value.owner.op.Cast(value, to=int(DataType.FLOAT))
            node.owner.set_input(node, place, wide[value])
    model.forget_types()


def _plan(graph: Graph) -> Iterator[_Widened]:
    for node in graph.topological_order():
        schema = node.schema
        if schema is None or node.domain or node.op_type in _AS_THEY_ARE or node.bodies:
            continue
        narrow = set[str]()
        operands = list[int]()
        for place, value in enumerate(node.inputs):
            if value is None or value.dtype not in _LOW:
                continue
            formal = formal_of(schema, place)
            if DataType.FLOAT in formal.dtypes:
                operands.append(place)
                narrow.add(formal.parameter)
        outputs = [
            (place, value.dtype)
            for place, value in enumerate(node.outputs)
            if value is not None
            and value.dtype in _LOW
            and output_formal_of(schema, place).parameter in narrow
        ]
        if operands:
            yield _Widened(node, tuple(operands), tuple(outputs))


def _round(node: Node, place: int, dtype: int) -> None:
    """Round an output; the Cast computes the value with its name."""
    cast = node.owner.add_node("Cast", [], 0, {"to": dtype})
    node.owner.insert_after(cast, node, place)
