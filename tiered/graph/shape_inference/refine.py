"""Refinement of types to a fixed point: where onnx infers little, and after edits.

A dim that has an invented name is often a size that shape arithmetic in the model computes. Once
that is found, the size replaces the name everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.types import Dim, Shape, TensorType, ValueType, tensor_type
from tiered.graph.core.value import ELEMENT_DTYPES, NOT_INFERRED, Value
from tiered.graph.edits.invalidate import forget_elements
from tiered.graph.shape_inference.rules.control_flow_types import body_inputs
from tiered.graph.shape_inference.symbolic_dims import is_invented

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node


class _Queue:
    """Nodes in the order in which they were added; one that waits is not added again."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._order: deque[Node] = deque()
        # The serial numbers: a set of nodes would call the hash of each.
        self._waiting: set[int] = set()
        self.add(nodes)

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, nodes: Iterable[Node]) -> None:
        waiting = self._waiting
        for node in nodes:
            if node.id not in waiting:
                waiting.add(node.id)
                self._order.append(node)

    def pop(self) -> Node:
        node = self._order.popleft()
        self._waiting.remove(node.id)
        return node


class Refiner:
    """Refines the shapes of a model, node by node, until nothing changes.

    Args:
        model: the model; only the types of the view change.
        infer: returns the types of the outputs of a node; its second argument is whether to ask
            onnx.
        write: sets the type of a value.
    """

    def __init__(
        self,
        model: ModelState,
        infer: Callable[[Node, bool], Sequence[ValueType | None]],
        write: Callable[[Value, ValueType | None], None],
    ) -> None:
        self.model = model
        self.infer = infer
        self._write = write
        # Values whose types changed since onnx inferred their consumers.
        self.changed: set[Value] = set()

    def run(self, nodes: Iterable[Node], *, inferred: bool) -> None:
        """Refine nodes, and the consumers of each value about which more is known now.

        That is a value whose type becomes more exact, or one with elements that a node computes: a
        size may be known below although the types between are the same as before.

        Args:
            nodes: the first nodes, in topological order.
            inferred: whether onnx has already inferred these nodes with their present operands.
        """
        queue = _Queue(nodes)
        while queue:
            node = queue.pop()
            if not node.is_live:
                continue
            for value in self._refine(node, inferred=inferred):
                forget_elements(value)
                queue.add(self.readers(value))
            for output in node._outputs:
                if output is not None and is_shape_arithmetic(output):
                    queue.add(output._users.values())
            if not queue and self.model.dims.has_learned:
                queue.add(self._resolve())

    @staticmethod
    def readers(value: Value) -> list[Node]:
        """Return the nodes with types that follow from that of a value."""
        owners = (graph.parent_node for graph in value.output_of)
        return [*value._users.values(), *(owner for owner in owners if owner is not None)]

    def _set_type(self, value: Value, value_type: ValueType | None) -> None:
        self._write(value, value_type)
        self.changed.add(value)

    def _refine(self, node: Node, *, inferred: bool) -> list[Value]:
        """Infer the incomplete types of a node; return the values whose types became more exact."""
        refined = list[Value]()
        for value, given in body_inputs(node) if node.bodies else ():
            if is_incomplete(value.type) and self._take(value, given):
                refined.append(value)
        incomplete = [
            value for value in node._outputs if value is not None and is_incomplete(value._type)
        ]
        if not incomplete:
            return refined
        refined += [value for value in incomplete if self._resolve_value(value)]
        inherited = {
            dim for value in node._inputs if value is not None for dim in value.shape or ()
        }
        # Dims that are incomplete in the operands too are refined at their producers.
        if not any(is_incomplete(value._type, inherited) for value in incomplete):
            return refined
        ask_onnx = not inferred or any(value in self.changed for value in node._inputs if value)
        for output, kind in zip(node._outputs, self.infer(node, ask_onnx), strict=False):
            if output is None or kind is None:
                continue
            if isinstance(kind, TensorType):
                if self._take(output, kind):
                    refined.append(output)
            elif output.type is None:
                self._set_type(output, kind)
        return [*refined, *(value for value in incomplete if self._name_dims(value))]

    def _name_dims(self, value: Value) -> bool:
        """Invent names for the unknown dims of a value; return whether there are any."""
        kind = value._type
        if not isinstance(kind, TensorType) or not kind.shape or None not in kind.shape:
            return False
        invent = self.model.dims.invent
        shape = tuple([invent() if dim is None else dim for dim in kind.shape])
        self._set_type(value, tensor_type(kind.dtype, shape))
        return True

    def _take(self, value: Value, found: TensorType) -> bool:
        """Merge a type into that of a value; return whether it changed.

        A size found for a dim with an invented name replaces the name in the whole model.
        """
        before = value.type
        known = before.shape if isinstance(before, TensorType) else None
        if found.shape is None or (known is not None and len(known) != len(found.shape)):
            if before is None:
                self._set_type(value, found)
            return before is None
        merged = tensor_type(found.dtype, self._merged(known, found.shape))
        if merged == before:
            return False
        self._set_type(value, merged)
        return True

    def _merged(self, known: Shape | None, shape: Shape) -> Shape:
        dims, after = self.model.dims, list[Dim]()
        for old, new in zip(known or (None,) * len(shape), shape, strict=True):
            if isinstance(old, str) and new is not None and old != new:
                size = dims.size(new)
                assert size is not None
                dims.learn(old, size)
            is_better = new is not None and is_invented(old) and not is_invented(new)
            after.append(dims.resolve(new if old is None or is_better else old))
        return tuple(after)

    def _resolve(self) -> list[Node]:
        """Replace invented names by the sizes found for them; return the affected consumers."""
        self.model.dims.has_learned = False
        readers: dict[Node, None] = {}
        for graph in self.model.graphs():
            for value in graph._values.values():
                if self._resolve_value(value):
                    forget_elements(value)
                    readers.update(dict.fromkeys(value._users.values()))
        return sorted(readers, key=lambda node: node.id)

    def _resolve_value(self, value: Value) -> bool:
        """Replace invented names in the type of a value; return whether it changed."""
        value_type, resolve = value._type, self.model.dims.resolve
        if not isinstance(value_type, TensorType) or value_type.shape is None:
            return False
        shape = tuple([resolve(dim) for dim in value_type.shape])
        if shape == value_type.shape:
            return False
        self._set_type(value, tensor_type(value_type.dtype, shape))
        return True


def is_shape_arithmetic(value: Value) -> bool:
    """Return whether sizes may follow from the elements of a value: a few integers."""
    kind = value._type
    if not isinstance(kind, TensorType) or kind.dtype not in ELEMENT_DTYPES:
        return False
    return kind.shape is not None and len(kind.shape) <= 1


def is_incomplete(kind: object, inherited: Container[Dim] = ()) -> bool:
    """Return whether the rank or a dim of a type is unknown, or a dim has an invented name.

    Args:
        kind: the type.
        inherited: dims of operands; invented names among them do not count.
    """
    if not isinstance(kind, TensorType):
        return kind is None or kind is NOT_INFERRED
    if kind.shape is None:
        return True
    for dim in kind.shape:
        if type(dim) is int:
            continue
        if dim is None or (is_invented(dim) and dim not in inherited):
            return True
    return False
