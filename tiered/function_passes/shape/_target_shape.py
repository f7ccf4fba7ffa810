"""The targets of Reshape and Expand as constants: sizes that are numbers or dims of the operand."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tiered.graph import Elements, Node, Value
from tiered.graph.shape_inference.symbolic_dims import Poly


def _strict_sizes(node: Node, elements: Elements) -> Elements | None:
    """Return the sizes of a target with `allowzero`; None for a 0 or for a -1 of unknown size.

    With `allowzero`, -1 may be beside a dim of 0; beside a copied dim of 0 it may not.
    """
    shape, target = node.output.shape, elements.copy()
    for axis, element in enumerate(elements.tolist()):
        if element == -1:
            target[axis] = None if shape is None else shape[axis]
        if element in (0, -1) and (not isinstance(target[axis], int) or target[axis] == 0):
            return None
    return target


def reshape_target(node: Node, data: Value, elements: Elements) -> list[int] | None:
    """Return the target with 0 for copied dims and -1 for one inferred dim.

    Both together are valid only if the target had the -1 before: if the copied dim is 0 at run
    time, the -1 cannot be inferred and the new Reshape would fail.
    """
    meant = _strict_sizes(node, elements) if node.attributes.get("allowzero") else elements
    if meant is None:
        return None
    assert data.shape is not None
    dims = [data.owner.model.dims.size(dim) for dim in data.shape]
    target: list[int | None] = []
    for axis, element in enumerate(meant.flat):
        if isinstance(element, int):
            target.append(element)
        elif element is not None and axis < len(dims) and element == dims[axis]:
            target.append(0)
        else:
            target.append(None)
    unknown = target.count(None)
    if unknown == 0:
        return [size for size in target if size is not None]
    numbers = [size for size in target if size is not None]
    if unknown > 1 or any(size <= 0 for size in numbers):
        return None
    return [-1 if size is None else size for size in target]


def expand_target(node: Node, data: Value, elements: Elements) -> list[int] | None:
    """Return the sizes, with 1 for dims that the operand has already."""
    assert data.shape is not None
    dims = [data.owner.model.dims.size(dim) for dim in data.shape]
    offset = len(elements) - len(dims)
    target: list[int] = []
    for axis, element in enumerate(elements.flat):
        if isinstance(element, int):
            target.append(element)
        elif element is not None and axis >= offset and element == dims[axis - offset]:
            target.append(1)
        else:
            return None
    return target


def dims_beside_minus_one(node: Node) -> Iterator[str]:
    """Yield the dims that are factors of the sizes beside the -1 in the target of a Reshape."""
    sizes = _elements(node)
    if -1 in sizes:
        for size in sizes:
            if isinstance(size, Poly) and len(size.terms) == 1:
                yield from size.terms[0][0]


def may_have_zero(node: Node, positive: Collection[str]) -> bool:
    """Return whether the target of a Reshape may have a 0; beside a -1 it may not.

    Args:
        node: the Reshape.
        positive: the dims that are at least 1.
    """
    sizes = _elements(node)
    if -1 in sizes:
        return False
    return not sizes or not all(
        size.is_positive_if(positive) if isinstance(size, Poly) else bool(size) for size in sizes
    )


def _elements(node: Node) -> list[object]:
    elements = node.given(1).elements
    return [] if elements is None else elements.ravel().tolist()
