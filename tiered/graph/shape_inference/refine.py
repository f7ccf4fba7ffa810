"""Types made more exact: where onnx's inference gave up, and after edits.

A dim that onnx could only invent a name for is often a size that the shape arithmetic before it
spells out; learning that replaces the name everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.types import Dim, Shape, TensorType, ValueType, tensor_type
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.edits.invalidate import forget_elements
from tiered.graph.shape_inference.rules.control_flow import scan_inputs
from tiered.graph.shape_inference.symbolic_dims import is_invented

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node

Found = Sequence["ValueType | None"]
"""The types of the outputs of a node, in their order."""


class Refiner:
    """Completes the shapes of a model, node by node, until nothing more follows.

    Args:
        model: the model; only the types of the view change.
        infer: gives the types of the outputs of a node; it is told whether to leave onnx alone.
        state: writes a type.
    """

    def __init__(
        self,
        model: ModelState,
        infer: Callable[[Node, bool], Found],
        state: Callable[[Value, ValueType | None], None],
    ) -> None:
        self.model = model
        self.infer = infer
        self._write = state
        # Values that are known better than when onnx looked at the nodes that read them.
        self.changed: set[Value] = set()

    def run(self, nodes: Iterable[Node], *, inferred: bool) -> None:
        """Look at nodes, and at whatever reads a value that they made more exact.

        Args:
            nodes: where to begin, in topological order.
            inferred: whether onnx has inferred these nodes as they are.
        """
        queue = deque(nodes)
        while queue:
            node = queue.popleft()
            if not node.is_live:
                continue
            for value in self._refine(node, inferred=inferred):
                forget_elements(value)
                queue.extend(value._users.values())
                queue.extend(graph.owner for graph in value.output_of if graph.owner)
            if not queue and self.model.dims.has_news:
                queue.extend(self._resolve())

    def state(self, value: Value, value_type: ValueType | None) -> None:
        """Write a type that is more exact than the one before."""
        self._write(value, value_type)
        self.changed.add(value)

    def _refine(self, node: Node, *, inferred: bool) -> list[Value]:
        """Infer what is vague about a node; return the values that became more exact."""
        moved = list[Value]()
        if node.op_type == "Scan" and not node.domain:
            for value, given in scan_inputs(node):
                if is_vague(value.type) and self._learn(value, given):
                    moved.append(value)
        vague = [value for value in node._outputs if value is not None and is_vague(value._type)]
        if not vague:
            return moved
        moved += [value for value in vague if self._resolve_value(value)]
        passed_on = {
            dim for value in node._inputs if value is not None for dim in value.shape or ()
        }
        # What is vague about the operands too is found out there or nowhere.
        if not any(is_vague(value._type, passed_on) for value in vague):
            return moved
        is_news = not inferred or any(value in self.changed for value in node._inputs if value)
        for output, kind in zip(node._outputs, self.infer(node, is_news), strict=False):
            if output is None or kind is None:
                continue
            if isinstance(kind, TensorType):
                if self._learn(output, kind):
                    moved.append(output)
            elif output.type is None:
                self.state(output, kind)
        return [*moved, *(value for value in vague if self._name_dims(value))]

    def _name_dims(self, value: Value) -> bool:
        """Invent names for the dims that nothing is known of; tell whether there were such."""
        kind = value._type
        if not isinstance(kind, TensorType) or not kind.shape or None not in kind.shape:
            return False
        invent = self.model.dims.invent
        shape = tuple([invent() if dim is None else dim for dim in kind.shape])
        self.state(value, tensor_type(kind.dtype, shape))
        return True

    def _learn(self, value: Value, news: TensorType) -> bool:
        """Take over what is known of a value's dims, and what that says of invented names."""
        before = value.type
        known = before.shape if isinstance(before, TensorType) else None
        if news.shape is None or (known is not None and len(known) != len(news.shape)):
            if before is None:
                self.state(value, news)
            return before is None
        refined = tensor_type(news.dtype, self._merged(known, news.shape))
        if refined == before:
            return False
        self.state(value, refined)
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
        """Replace invented names by what they turned out to be; return the nodes that read such."""
        self.model.dims.has_news = False
        readers: dict[Node, None] = {}
        for graph in self.model.graphs():
            for value in graph._values.values():
                if self._resolve_value(value):
                    forget_elements(value)
                    readers.update(dict.fromkeys(value._users.values()))
        return sorted(readers, key=lambda node: node.id)

    def _resolve_value(self, value: Value) -> bool:
        """Replace the invented names in a type by what is known of them; tell whether any was."""
        value_type, resolve = value._type, self.model.dims.resolve
        if not isinstance(value_type, TensorType) or value_type.shape is None:
            return False
        shape = tuple([resolve(dim) for dim in value_type.shape])
        if shape == value_type.shape:
            return False
        self.state(value, tensor_type(value_type.dtype, shape))
        return True


def is_vague(kind: object, passed_on: Container[Dim] = ()) -> bool:
    """Tell whether the rank of a type or a dim of it is unknown, or has an invented name.

    Invented names that are passed on from an operand do not count.
    """
    if not isinstance(kind, TensorType):
        return kind is None or kind is NOT_INFERRED
    shape = kind.shape
    if shape is None:
        return True
    return any(dim is None or (is_invented(dim) and dim not in passed_on) for dim in shape)
