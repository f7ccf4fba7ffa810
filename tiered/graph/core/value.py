"""Value: one named tensor of a graph, with its producer, users, type and, if constant, contents."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import Dim, Shape, TensorType, ValueType, read_type, tensor_type
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    import onnx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

SLOT_BITS: Final = 32
"""A use is keyed by `node.id << SLOT_BITS | slot`: as small and quick as a key can be."""

SLOT_MASK: Final = (1 << SLOT_BITS) - 1


def refuse_copy(part: object, memo: object = None) -> NoReturn:
    """Raise ModelError: `copy.copy` and `copy.deepcopy` of a part of a model."""
    raise ModelError(f"{part!r} belongs to a model, and has no copy alone: `model.copy()`")


class NotInferred:
    """The type or elements of a value that are not inferred yet."""


NOT_INFERRED: Final = NotInferred()

Elements = np.ndarray[Any, np.dtype[Any]]
"""An object array of known elements (int, a polynomial in dims, or None), in the tensor's shape."""

LARGEST: Final = 256
"""Tensors with more elements are not shapes: their elements are not propagated."""

ELEMENT_DTYPES: Final = frozenset({DataType.BOOL, DataType.INT32, DataType.INT64})
"""The dtypes whose elements are propagated."""


class Use(NamedTuple):
    """One use of a value: input `slot` of `node`, at any depth below the value."""

    node: Node
    slot: int


class Value:
    """One named tensor: at most one producer, any number of users.

    It has identity: undo restores the same object, and a rename keeps it. Its hash is its serial
    number: hashes by address would make sets iterate in another order in each run.
    """

    __slots__ = {
        "_captures": None,
        "_elements": None,
        "_tensor": None,
        "_type": None,
        "_users": None,
        "declared": "The value_info of the file, None if it has none.",
        "graph": "The graph of the value, None once removed; `owner` raises instead.",
        "id": "The serial number within the model.",
        "index": "Which output of `producer` it is, from 0.",
        "input_of": "The graph that has it as an input, None for all other values.",
        "is_trained": "Whether training info assigns to it: its contents change between runs.",
        "name": "Its name, unique in its graph and those around; `Graph.rename` changes it.",
        "output_of": "The graphs that have it as an output: its own, or bodies below it.",
        "pins": "How often training info and quantization annotations name it.",
        "producer": "The node that computes it; None for inputs and initializers.",
    }

    def __init__(self, serial: int, graph: Graph | None, name: str) -> None:
        self.id = serial
        self.graph = graph
        self.name = name
        self.producer: Node | None = None
        self.index = 0
        self.input_of: Graph | None = None
        self.output_of: tuple[Graph, ...] = ()
        # Uses which are no node's: quantization annotations and training info.
        self.pins = 0
        self.is_trained = False
        # The value_info entry of the file, written back while the value is in the graph.
        self.declared: onnx.ValueInfoProto | None = None
        self._users: dict[int, Node] = {}
        # Nodes of this value's own graph with bodies that read it, and the number of reads.
        self._captures: dict[Node, int] | None = None
        self._type: ValueType | NotInferred | None = None
        self._tensor: Tensor | None = None
        self._elements: Elements | NotInferred | None = NOT_INFERRED

    def __hash__(self) -> int:
        return self.id

    __copy__ = __deepcopy__ = refuse_copy

    def __repr__(self) -> str:
        return f"<Value {self.name!r} {self.type or ''}>" if self.graph else f"<dead {self.name!r}>"

    @property
    def owner(self) -> Graph:
        """Return the graph of the value.

        Raises:
            ModelError: the value was removed, or is detached.
        """
        if self.graph is None:
            raise ModelError(f"value {self.name!r} is in no graph: it was removed, or is detached")
        return self.graph

    @property
    def label(self) -> str:
        """Return the name of the value in messages."""
        return self.name

    # --- uses -------------------------------------------------------------------------------------

    @property
    def users(self) -> list[Use]:
        """Return every use by a node, at any depth, by the node's serial number and slot."""
        users = self._users
        keys = sorted(users) if len(users) > 1 else users
        return [Use(users[key], key & SLOT_MASK) for key in keys]

    @property
    def readers(self) -> list[Node]:
        """Return the nodes of the value's own graph that read it, directly or in their bodies."""
        found = {node for node in self._users.values() if node.graph is self.graph}
        return sorted(found.union(self._captures or ()), key=lambda node: node.id)

    @property
    def user_nodes(self) -> Collection[Node]:
        """Return the node of each use, at any depth, in no particular order, without a sort."""
        return self._users.values()

    @property
    def n_users(self) -> int:
        """Return the number of uses by nodes; a node that reads the value twice counts twice."""
        return len(self._users)

    @property
    def is_used(self) -> bool:
        """Return whether a node reads it, a graph has it as an output, or metadata name it."""
        return True if self._users or self.output_of else self.pins > 0

    @property
    def has_one_user(self) -> bool:
        """Return whether the value has exactly one use, by a node."""
        return len(self._users) == 1 and not self.output_of and not self.pins

    def is_only_read_by(self, node: Node) -> bool:
        """Return whether all uses of the value are by one node of its own graph."""
        return (
            node.graph is self.graph
            and all(user is node for user in self._users.values())
            and not self.output_of
            and not self.pins
        )

    @property
    def is_captured(self) -> bool:
        """Return whether a nested body reads the value."""
        return bool(self._captures)

    @property
    def can_be_renamed(self) -> bool:
        """Return whether the value can be renamed: no interface or annotation has its name."""
        return self.producer is not None and not self.output_of and not self.pins

    @property
    def can_become_output(self) -> bool:
        """Return whether the value may take the name of an output of its graph.

        An initializer may, except before IR 4, where it is also an input that callers may feed.
        """
        if self.can_be_renamed:
            return True
        tensor = self._tensor
        if tensor is None or self.producer is not None or tensor.is_sparse:
            return False
        is_known = bool(self.output_of or self.pins) or self.is_graph_input
        return not is_known and self.owner.model.ir_version >= 4

    # --- what it is -------------------------------------------------------------------------------

    @property
    def is_float(self) -> bool:
        """Return whether it is known to be a tensor of floats of 16 bits or more."""
        return self.dtype is not None and DataType(self.dtype).is_float

    @property
    def is_graph_input(self) -> bool:
        """Return whether it is an input of its graph, overridable initializers included."""
        return self.input_of is not None

    @property
    def is_graph_output(self) -> bool:
        """Return whether the value is an output of its graph, or of a body below it."""
        return bool(self.output_of)

    @property
    def is_initializer(self) -> bool:
        """Return whether it is an initializer, overridable or not."""
        return self._tensor is not None and self.producer is None and self.graph is not None

    @property
    def is_overridable(self) -> bool:
        """Return whether it is an initializer that callers may feed: a default, not a constant."""
        return self._tensor is not None and self.input_of is not None

    @property
    def is_constant(self) -> bool:
        """Return whether its contents are known and stored: no caller can override them."""
        return self.tensor is not None

    # --- contents ---------------------------------------------------------------------------------

    @property
    def tensor(self) -> Tensor | None:
        """Return the tensor of a constant without reading its elements, None for other values.

        An initializer that callers may feed, or that training updates, is no constant.
        """
        if self._tensor is not None:
            return None if self.input_of is not None or self.is_trained else self._tensor
        producer = self.producer
        if producer is not None and producer.op_type == "Constant" and not producer.domain:
            return producer.constant_tensor()
        return None

    @property
    def default(self) -> Tensor | None:
        """Return the contents of an initializer, also of one that is no constant."""
        return self._tensor

    @property
    def const(self) -> np.ndarray[Any, Any] | None:
        """Return the elements of a constant, None for other values and for sparse tensors.

        The array has the shape and dtype of the tensor and is read-only. The first access reads
        external data.

        Raises:
            ModelError: external data is not there, or too short.
        """
        tensor = self.tensor
        return None if tensor is None or tensor.is_sparse else tensor.numpy()

    @property
    def number(self) -> float | None:
        """Return the only element of a constant, None for other values.

        Raises:
            ModelError: external data is not there, or too short.
        """
        array = self.const
        return array.item() if array is not None and array.size == 1 else None

    # --- type -------------------------------------------------------------------------------------

    @property
    def type(self) -> ValueType | None:
        """Return the type as far as it is known; the first access infers it."""
        value_type = self._type
        if isinstance(value_type, NotInferred):
            if self._tensor is not None:
                self._type = tensor_type(self._tensor.dtype, self._tensor.shape)
            elif self.graph is None or self.producer is None:
                self._type = None if self.declared is None else read_type(self.declared.type)
            else:
                self.graph.model.types.infer(self)
            value_type = self._type
            assert not isinstance(value_type, NotInferred)
        return value_type

    @property
    def dtype(self) -> int | None:
        """Return the TensorProto.DataType of a dense tensor, None while unknown."""
        value_type = self._type
        if type(value_type) is not TensorType:
            value_type = self.type
        return value_type.dtype if isinstance(value_type, TensorType) else None

    @property
    def shape(self) -> Shape | None:
        """Return the dims (int, symbol, or None each), None for an unknown rank."""
        value_type = self._type
        if type(value_type) is not TensorType:
            value_type = self.type
        return value_type.shape if isinstance(value_type, TensorType) else None

    @property
    def elements(self) -> Elements | None:
        """Return the known elements of a small integer or boolean tensor.

        An object array of int, `Poly` (a size that depends on dynamic dims) or None; None for a
        tensor without a known element.
        """
        elements = self._elements
        if isinstance(elements, NotInferred):
            if self.graph is None:
                return self.constant_elements()
            if self.producer is None:
                elements = self._elements = self.constant_elements()
            else:
                elements = self.graph.model.types.elements_of(self)
        return elements

    def constant_elements(self) -> Elements | None:
        """Return the elements of a small integer or boolean constant, None for other values."""
        tensor = self.tensor
        if tensor is None or tensor.is_sparse or tensor.size > LARGEST:
            return None
        return tensor.numpy().astype(object) if tensor.dtype in ELEMENT_DTYPES else None

    @property
    def rank(self) -> int | None:
        """Return the number of axes, 0 for a scalar, None while unknown."""
        shape = self.shape
        return None if shape is None else len(shape)

    def has_rank_of(self, other: Value) -> bool:
        """Return whether both ranks are known and equal: no operand added dims to `other`."""
        return self.rank is not None and self.rank == other.rank

    def dim(self, axis: int) -> Dim:
        """Return the size of one axis: a number, a symbol, or None if unknown.

        A negative axis counts from the last one; an axis out of range is None.
        """
        shape = self.shape
        return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """Return the shape when every dim is a known size."""
        shape = self.shape
        if shape is None:
            return None
        for dim in shape:
            if not isinstance(dim, int):
                return None
        return cast("tuple[int, ...]", shape)


if TYPE_CHECKING:

    class Constant(Value):
        """A value that `const(...)` matched: the annotation of a pass; its elements are known."""

        tensor: Tensor
        const: np.ndarray[Any, Any]

else:
    Constant = Value
