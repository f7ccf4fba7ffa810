"""What the search for constraints on inputs needs of a graph: uses, captures, shapes, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

Shape = tuple[int | None, ...]

_SMALL = 1024  # elements of a constant that is worth reading


@dataclass(frozen=True)
class Fact:
    """One thing that is known about an input's values.

    Attributes:
        kind: "index", "length", "values"; "mask", "conjunct", "chooser" (uses as a truth value);
            "size" (through other operators); "positive" (else it fails), "domain" (else it
            is NaN), "divisor", "dividend", "small", "zero_point", "condition"; "addend",
            "factor".
        why: the operator that restricts the values, for messages.
        low, high: values lie in low <= x < high (index, length); None where unknown.
        values: the values to take, in order (kind "values"); the last one repeats.
        dims: the sizes of the axes that index tuples address (ScatterND and the like).
    """

    kind: str
    why: str
    low: int = 0
    high: int | None = None
    values: tuple[float, ...] = ()
    dims: tuple[int, ...] = ()


@dataclass
class Scope:
    """A graph with its uses by name, the bodies that capture a name, shapes and constants."""

    graph: onnx.GraphProto
    parent: Scope | None = None
    owner: onnx.NodeProto | None = None
    users: dict[str, list[tuple[onnx.NodeProto, int]]] = field(default_factory=dict)
    capturers: dict[str, list[Scope]] = field(default_factory=dict)
    bodies: dict[int, list[Scope]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    children: list[Scope] = field(default_factory=list)
    infer: Callable[[], onnx.GraphProto] | None = None

    @classmethod
    def build(
        cls,
        graph: onnx.GraphProto,
        parent: Scope | None = None,
        owner: Any = None,
        *,
        bound: Mapping[str, tuple[int, ...]] | None = None,
        infer: Callable[[], onnx.GraphProto] | None = None,
    ) -> Scope:
        """Return the scope of a graph, with the scopes of its bodies.

        Args:
            graph: the graph.
            parent: the scope that contains it.
            owner: the node that it is a body of.
            bound: the shapes of inputs.
            infer: returns the graph with inferred shapes; called when one is first needed.
        """
        scope = cls(graph, parent, owner, infer=infer)
        if parent is None:
            scope.shapes.update(_shapes_of(graph.input))
            scope.shapes.update(bound or {})
        for initializer in graph.initializer:
            scope.constants[initializer.name] = initializer
            scope.shapes[initializer.name] = tuple(initializer.dims)
        for node in graph.node:
            if node.op_type == "Constant" and len(node.attribute) == 1:
                scope.constants[node.output[0]] = node.attribute[0]
            for slot, name in enumerate(node.input):
                if name:
                    scope.users.setdefault(name, []).append((node, slot))
        scope._add_bodies()
        return scope

    def _add_bodies(self) -> None:
        for node, graph in _bodies_of(self.graph):
            body = Scope.build(graph, self, node)
            self.children.append(body)
            self.bodies.setdefault(id(node), []).append(body)
            for name in body.free_names():
                self.capturers.setdefault(name, []).append(body)

    def _add_shapes(self, graph: onnx.GraphProto) -> None:
        """Add the shapes of a graph with the same nodes."""
        inferred = _shapes_of((*graph.value_info, *graph.output, *graph.input))
        self.shapes = {**inferred, **self.shapes}
        for child, (_, body) in zip(self.children, _bodies_of(graph), strict=True):
            child._add_shapes(body)

    @property
    def _root(self) -> Scope:
        return self if self.parent is None else self.parent._root

    def free_names(self) -> Iterator[str]:
        """Yield the names that come from outside, used here or in a body below."""
        own = {i.name for i in self.graph.input} | set(self.constants)
        own.update(name for node in self.graph.node for name in node.output)
        results = {o.name for o in self.graph.output}
        for name in dict.fromkeys((*self.users, *self.capturers, *sorted(results))):
            if name not in own:
                yield name

    def shape(self, name: str) -> Shape | None:
        root = self._root
        if name not in self.shapes and root.infer is not None:
            infer, root.infer = root.infer, None
            root._add_shapes(infer())
        scope: Scope | None = self
        while scope is not None:
            if name in scope.shapes:
                return scope.shapes[name]
            scope = scope.parent
        return None

    def axis_size(self, name: str, axis: int) -> int | None:
        shape = self.shape(name)
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        return shape[axis]

    def constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return a small constant's numbers, else None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.constants:
                return _numbers(scope.constants[name])
            scope = scope.parent
        return None


def _shapes_of(values: Iterable[onnx.ValueInfoProto]) -> dict[str, Shape]:
    return {
        value.name: tuple(
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
            for d in value.type.tensor_type.shape.dim
        )
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def _bodies_of(graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, onnx.GraphProto]]:
    """Yield the bodies of nodes, in order."""
    for node in graph.node:
        for attribute in node.attribute:
            bodies = [attribute.g] if attribute.HasField("g") else attribute.graphs
            yield from ((node, body) for body in bodies)


def _numbers(source: Any) -> np.ndarray[Any, Any] | None:
    from onnx import AttributeProto, TensorProto, helper, numpy_helper

    if isinstance(source, AttributeProto):
        if source.type != AttributeProto.TENSOR:
            plain = source.type in (1, 2, 6, 7)  # FLOAT, INT, FLOATS, INTS
            return np.asarray(helper.get_attribute_value(source)) if plain else None
        source = source.t
    small = int(np.prod(source.dims)) <= _SMALL
    stored_here = source.data_location != TensorProto.EXTERNAL
    if not small or not stored_here or source.data_type == TensorProto.STRING:
        return None
    return np.asarray(numpy_helper.to_array(source))


@dataclass(frozen=True)
class Place:
    """A value that depends on an input: scale * x + offset for the input's x, if `exact`."""

    scope: Scope
    name: str
    scale: float = 1
    offset: float = 0
    exact: bool = True  # False: something unknown was added or multiplied
    compared: bool = False  # True: only the outcome of a comparison
    counted: bool = False  # True: a running count of the values (CumSum)
