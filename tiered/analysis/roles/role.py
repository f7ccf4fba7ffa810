"""What a role is, and the walks that the searches for roles share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from tiered.graph import DataType, Graph, Model, Node, Value
from tiered.graph.core.dtypes import float_info
from tiered.graph.queries.op_traits import CASTS

Array = np.ndarray[Any, Any]

Name = Literal[
    "epsilon", "index or shape", "large constant", "mask", "position", "probability", "statistic"
]

_MOST_LOST: Final = 1 / 16
"""A number that rounding moves by a larger part of it is lost."""


class Role(NamedTuple):
    """Why a node must not compute in a narrower type: the role of what it reads or computes.

    Attributes:
        name: the role.
        why: how it was recognised.
    """

    name: Name
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


Roles = Mapping[Node, Role]
"""The nodes of a model that have a role, with the first that was found."""


Ignored = Callable[[Node], bool]
"""Whether the user forces a node into the narrower type, so that its constants have no role."""


class Narrow(NamedTuple):
    """The numbers of a narrower type.

    Attributes:
        dtype: the type.
        largest: its largest number.
    """

    dtype: DataType
    largest: float

    @classmethod
    def of(cls, dtype: DataType) -> Narrow:
        """Return the numbers of a type."""
        return cls(dtype, float(float_info(dtype.numpy).max))

    def loses(self, array: Array) -> Array:
        """Return which elements become 0, or are rounded by more than a sixteenth."""
        wide = array.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = wide.astype(self.dtype.numpy).astype(np.float64)
            is_lost = np.abs(rounded - wide) > np.abs(wide) * _MOST_LOST
        return np.asarray(np.isfinite(wide) & np.isfinite(rounded) & is_lost)

    def holds(self, number: float) -> bool:
        """Return whether a magnitude is neither lost nor beyond the range."""
        return number <= self.largest and not self.loses(np.array(number)).any()


def graphs_of(model: Model) -> list[Graph]:
    """Return the main graph and its bodies; local functions have opsets of their own."""
    return [graph for graph in model.graphs() if not graph.root.is_function]


def nodes_of(model: Model) -> Iterator[Node]:
    """Yield the nodes of ONNX's own domain, in bodies too, each after those that it reads."""
    for graph in graphs_of(model):
        yield from (node for node in graph.topological_order() if not node.domain)


def constants_of(node: Node) -> Iterator[tuple[int, Value, Array]]:
    """Yield the constant operands of floats of a node: the place, the value and its numbers.

    Those that are attributes at the opset of the model, as bounds of a Clip, are among them, and
    the results of a ConstantOfShape or of a Cast of a constant, whose numbers are known too.
    """
    for place, value in enumerate(node.operands):
        if value is None or value.dtype != DataType.FLOAT:
            continue
        array = numbers_of(value)
        if array is not None and array.size:
            yield place, value, array


def numbers_of(value: Value) -> Array | None:
    """Return the numbers of a constant, or those that a node without data makes; None if unknown.

    The array has the shape of the value, or is its only number.
    """
    if value.tensor is not None:
        return None if value.tensor.is_sparse else value.tensor.numpy()
    node = value.producer
    if node is None or node.domain:
        return None
    if node.is_op("ConstantOfShape"):
        filling = node.attr("value", None)
        return None if filling is None else filling.numpy()
    operand = node.input(0) if node.op_type in CASTS else None
    array = None if operand is None else operand.const
    if array is None or array.dtype.kind not in "fV":
        return None  # integers are no epsilons
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def data_of(node: Node) -> list[Value]:
    """Return the operands of floats of a node that are no constants."""
    return [
        value
        for value in node.inputs
        if value is not None and value.dtype == DataType.FLOAT and not value.is_constant
    ]


def largest_of(array: Array) -> float:
    """Return the largest finite magnitude of an array of floats, 0 if there is none."""
    ends = (float(np.fmax.reduce(array, axis=None)), float(np.fmin.reduce(array, axis=None)))
    if all(map(np.isfinite, ends)):
        return max(map(abs, ends))
    finite = array[np.isfinite(array)]
    return float(np.abs(finite).max()) if finite.size else 0.0


def readers_of(node: Node) -> Iterator[tuple[Node, int]]:
    """Yield the nodes that read an output of a node, each with the place of the operand.

    An If is a reader of the outputs of its bodies.
    """
    for output in node.outputs:
        if output is None:
            continue
        yield from output.users
        for graph in output.output_of:
            if graph.parent_node is not None and graph.parent_node.is_op("If"):
                yield graph.parent_node, 0
