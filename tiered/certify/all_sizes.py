"""Whether a proof at some sizes is one for all sizes.

Operators act on an axis of a named size in one way only here: an element of a result at an index of
that axis is computed of elements at the same index, or of all indices of axes of fixed sizes. Sizes
decide no more than how often that is done. So both sides compute one function F, or G, for each
tuple of indices, whatever the sizes are, and if they are equal at sizes that hold each pattern of
equal and unequal indices, they are equal at all. Such are sizes of at least 2, and at least as
many as there are axes of that name in a result.

Whatever else an operator does with a named size is refused: reductions over it, Concat along it,
Slices of it, and numbers that are computed from it but for shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import onnx

from tiered.certify.problem import Border, Problem, Side, size_at
from tiered.certify.rules.named_sizes import (
    MOST_INTEGERS,
    RULES,
    Dependent,
    Marks,
    NodeStep,
    marks_of,
    of_integers,
    sizes_of,
)
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph.shape_inference.symbolic_dims import Poly

_LEAST: Final = 2


def why_not_for_all(problem: Problem, proved: Sequence[Mapping[str, int]]) -> str:
    """Return why a proof at some sizes is not one for all; "" if it is.

    Args:
        problem: the problem, which is proved.
        proved: the sizes.
    """
    try:
        sides = [_results(problem, side) for side in problem.sides]
    except Dependent as error:
        return str(error)
    for name, one, other in zip(problem.outputs, *sides, strict=True):
        if one.shape != other.shape:
            return f"{name} has a shape that is the same only at some sizes"
        if (one.is_sized or other.is_sized) and not _are_same_sizes(one, other):
            return f"{name} is computed from sizes"
    if any(_has_all_patterns(sides[0], sizes) for sizes in proved):
        return ""
    return "no sizes that were tried hold each pattern of indices"


def _results(problem: Problem, side: Side) -> list[Marks]:
    """Return the outputs of a side, with names for their sizes.

    Raises:
        Dependent: a node does something else with a named size.
    """
    values: dict[str, Marks] = {}
    for name, border in problem.borders.items():
        values[name] = _of_border(problem, name, border)
    for name, stored in side.constants.items():
        is_small = stored.size <= MOST_INTEGERS
        values[name] = marks_of(stored.dense()) if is_small else Marks(tuple(stored.shape))
    _run(problem, side, side.nodes, values)
    return [values[name] for name in problem.outputs]


def _run(
    problem: Problem, side: Side, nodes: Sequence[onnx.NodeProto], values: dict[str, Marks]
) -> None:
    """Add the results of nodes to the values that they read.

    Raises:
        Dependent: a node does something else with a named size.
    """
    for node in nodes:
        rule = RULES.get(node.op_type) if not node.domain else None
        key = (node.domain, node.op_type, node.overload)
        is_if = node.op_type == "If" and not node.domain
        if (rule is None and not is_if) or key in side.functions:
            raise Dependent(f"{node.op_type} may depend on sizes")
        if any(name and name not in values for name in node.input):
            raise Dependent(f"a value before {node.op_type} is not known")
        inputs = [values[name] if name else None for name in node.input]
        try:
            if rule is None:
                made: Sequence[Marks] = _chosen(problem, side, node, values)
            else:
                made = rule(NodeStep(node, inputs, problem.opsets.get("", 1)))
        except (IndexError, TypeError, ValueError) as error:
            raise Dependent(f"{node.op_type} does not fit: {error}") from error
        if any(node.output[len(made) :]):
            raise Dependent(f"{node.op_type} has more results")
        values.update((name, each) for name, each in zip(node.output, made, strict=False) if name)


def _chosen(
    problem: Problem, side: Side, node: onnx.NodeProto, values: Mapping[str, Marks]
) -> list[Marks]:
    """Return the results of an If: of the same shapes in both bodies, and the choice is data."""
    if values[node.input[0]].is_sized:
        raise Dependent("If of a size")
    found = []
    for attribute in node.attribute:
        body, inner = attribute.g, dict(values)
        for tensor in body.initializer:
            inner[tensor.name] = marks_of(onnx.numpy_helper.to_array(tensor))
        if body.sparse_initializer:
            raise Dependent("a body has sparse constants")
        _run(problem, side, body.node, inner)
        found.append([inner[info.name] for info in body.output])
    one, other = found
    if any(each.is_sized for each in (*one, *other)):
        raise Dependent("If returns sizes")
    if [each.shape for each in one] != [each.shape for each in other]:
        raise Dependent("bodies of If return other shapes")
    return [Marks(each.shape) for each in one]


def _of_border(problem: Problem, name: str, border: Border) -> Marks:
    if border.dims is None or None in border.dims:
        raise Dependent(f"the rank or a size of {name} is not known")
    shape = tuple(dim for dim in border.dims if dim is not None)
    if border.elements is not None:
        return of_integers(sizes_of(border.elements, [int(str(size)) for size in shape]))
    is_sized = any(name in problem.given.at(sizes) for sizes in problem.sizes)
    return Marks(shape, None, is_sized)


def _are_same_sizes(one: Marks, other: Marks) -> bool:
    if one.integers is None or other.integers is None:
        return False
    return bool(one.integers.tolist() == other.integers.tolist())


def _has_all_patterns(results: Sequence[Marks], sizes: Mapping[str, int]) -> bool:
    """Return whether sizes hold each pattern of equal and unequal indices of the results."""
    held = TrialSizes((0,), 0)
    held.update(sizes)
    for result in results:
        counts = Counter(size for size in result.shape if isinstance(size, Poly))
        if any(size_at(size, held) < max(_LEAST, count) for size, count in counts.items()):
            return False
    return True
