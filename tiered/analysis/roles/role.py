"""What a role is, and the walks that the searches for roles share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from tiered.graph import DataType, Graph, Model, Node, Value
from tiered.graph.core.dtypes import float_info

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
    """Return the main graph and all bodies, without those of local functions."""
    return [graph for graph in model.graphs() if not graph.is_function]


def nodes_of(model: Model) -> Iterator[Node]:
    """Yield the nodes of ONNX's own domain, in bodies too, each after those that it reads."""
    for graph in graphs_of(model):
        yield from (node for node in graph.topological_order() if not node.domain)


def constants_of(node: Node) -> Iterator[tuple[int, Value, Array]]:
    """Yield the constant operands of floats of a node: the place, the value and its numbers.

    Those that are attributes at the opset of the model, as bounds of a Clip, are among them.
    """
    for place, value in enumerate(node.operands):
        if value is None or value.dtype != DataType.FLOAT or value.tensor is None:
            continue
        if not value.tensor.is_sparse and value.tensor.size:
            yield place, value, value.tensor.numpy()


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
    """Yield the nodes that read an output of a node, each with the place of the operand."""
    for output in node.outputs:
        if output is not None:
            yield from output.users
