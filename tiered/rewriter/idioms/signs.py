"""Signs: who can tell -0.0 from 0.0, and which values are never below 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.graph.core.analysis import Analysis, analysis
from tiered.graph.core.dtypes import DataType
from tiered.graph.core.edit import RENAMES, Edit, Entry
from tiered.graph.core.journal import dirty_nodes
from tiered.graph.core.value import Value
from tiered.graph.queries.op_traits import REARRANGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tiered.graph import Graph, Model, Node

# --- the sign of a zero ---------------------------------------------------------------------------

_NEVER_MINUS: Final = frozenset(
    {"Exp", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Sigmoid", "Softmax", "Softplus"}
)
"""Operators with results that are positive, 0.0 or NaN."""

_ERASING: Final = (
    _NEVER_MINUS
    | {"Abs", "Acos", "Cos", "Cosh"}
    | {"HardSigmoid", "Log", "LogSoftmax", "ReduceLogSumExp"}
)
"""Operators that compute the same for -0.0 and 0.0."""


def zero_sign_matters(value: Value) -> bool:
    """Return whether more than the sign of a zero may depend on the sign of a zero of a value.

    1 / -0.0 is -Inf, and 1 / 0.0 is Inf. Most operators pass the sign on, or lose it; calls of
    local functions and unknown operators may do anything with it.
    """
    model = value.graph.model if value.graph is not None else None
    if model is None:
        return True
    # Passes ask before each of their edits: most answers follow from the last ones.
    return value in model.analysis(_at_most) and value in model.analysis(_with_signs)


@analysis(survives=RENAMES)
def _with_signs(model: Model) -> set[Value]:
    """Return the values of floats in which the sign of a zero matters."""
    found: set[Value] = set()
    _add(found, [value for graph in model.graphs() for value in _read_signs(graph)])
    return found


class _AtMost(Analysis[set[Value]]):
    """These values and perhaps more, in time linear in the edits since the last question."""

    @property
    def survives(self) -> frozenset[Edit]:
        return RENAMES

    def __call__(self, model: Model) -> set[Value]:
        return set(model.analysis(_with_signs))

    def renewed(self, model: Model, result: set[Value], edits: Sequence[Entry]) -> set[Value]:
        # It only grows, and nobody else holds it: a copy for each edit would be quadratic.
        for node in dirty_nodes(edits):
            pending = _signs_read_by(node)
            passed_on = () if _erases_sign(node) else node.outputs
            inner = (value for body in node.bodies for value in body.inputs)
            if any(value in result for value in (*passed_on, *inner)):
                pending += _sources(node)
            _add(result, pending)
        return result


_at_most: Final = _AtMost()


def _add(found: set[Value], pending: list[Value]) -> None:
    """Add values, and those that their signs come from."""
    while pending:
        value = pending.pop()
        if value in found or (value.dtype is not None and not DataType(value.dtype).is_float):
            continue
        found.add(value)
        node = value.producer
        if node is None:
            owner = None if value.graph is None else value.graph.parent_node
            # An input of a body: an operand of the owner, or a state of the last iteration.
            pending += [] if owner is None else _sources(owner)
        elif not _erases_sign(node):
            pending += _sources(node)


def _sources(node: Node) -> list[Value]:
    outputs = [value for body in node.bodies for value in body.outputs]
    return [value for value in (*node.inputs, *outputs) if value is not None]


_READERS: Final = frozenset({"BitCast", "Cast", "Div", "Pow", "Reciprocal"})


def _read_signs(graph: Graph) -> list[Value]:
    """Return the operands of the nodes of a graph that read the sign of a zero."""
    read: list[Value] = []
    for domain, op_type in graph.operators:
        nodes = graph.nodes_of(op_type, domain)
        if nodes[0].schema is None or op_type in _READERS:
            read += [value for node in nodes for value in _signs_read_by(node)]
    return read


def _signs_read_by(node: Node) -> list[Value]:
    """Return the operands that a node reads with the signs of their zeros."""
    read: tuple[Value | None, ...] = ()
    if node.schema is None:
        read = node.inputs
    elif node.op_type not in _READERS:
        return []
    elif node.op_type == "Div":
        read = (node.input(1),)
    elif node.op_type == "Pow":
        exponent = node.const(1)
        if exponent is None or not (exponent >= 0).all():
            read = (node.input(0),)
    elif node.op_type != "Cast" or node.attr("to") == DataType.STRING:
        read = (node.input(0),)
    return [value for value in read if value is not None]


def _erases_sign(node: Node) -> bool:
    if node.domain:
        return False
    if node.op_type in _ERASING:
        return True
    first, second = node.input(0), node.input(1)
    if node.op_type == "Mul":
        return first is second
    if node.op_type in ("Add", "Sub"):
        return any(_is_never_zero(value) for value in (first, second))
    if node.op_type == "Pow":
        # Only an odd power keeps a sign.
        exponent = node.const(1)
        return exponent is not None and not (_modulo_2(exponent) == 1).any()
    if node.op_type in ("Clip", "Max"):
        bounds = (node.operand("min"),) if node.op_type == "Clip" else node.inputs
        return any(_is_above_zero(bound) for bound in bounds)
    return False


def _modulo_2(exponents: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the remainders of exponents; NaN for those that are not finite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.mod(exponents, 2))


def _is_never_zero(value: Value | None) -> bool:
    return value is not None and value.const is not None and bool((value.const != 0).all())


def _is_above_zero(value: Value | None) -> bool:
    return value is not None and value.const is not None and bool((value.const > 0).all())


# --- values that are never below 0 ----------------------------------------------------------------

_KEEPING: Final = (
    (REARRANGES - {"Gather", "Tile"})  # left out until a model needs them
    | {"Add", "Min", "Mul", "Sqrt"}
    | {"ReduceMean", "ReduceMin", "ReduceSum"}
)
"""Operators with such results if all of their floats are such numbers.

The maximum of no elements is -Inf, so ReduceMax is not among them.
"""

_DEPTH: Final = 16


def is_never_negative(value: Value, *, no_minus_zero: bool = False, depth: int = _DEPTH) -> bool:
    """Return whether it follows from a value's producers that no element is below 0.

    Args:
        value: the value; its elements may be NaN.
        no_minus_zero: whether -0.0 counts as negative too.
        depth: of the search.
    """
    if value.const is not None:
        array = value.const
        return bool((array >= 0).all()) and not (no_minus_zero and np.signbit(array).any())
    node = value.producer
    if node is None or node.domain or not depth or node.has_references:
        return False
    is_float = value.is_float
    floats = [each for each in node.inputs if each is not None and each.dtype == value.dtype]

    def keeps(each: Value) -> bool:
        return is_never_negative(each, no_minus_zero=no_minus_zero, depth=depth - 1)

    if node.op_type == "Abs":
        # The least integer has no counterpart, and stays as it is.
        return is_float
    if node.op_type in _NEVER_MINUS or (node.op_type == "Mul" and floats[0] is floats[1]):
        return is_float
    if node.op_type == "Pow":
        exponent = node.const(1)
        return is_float and exponent is not None and not _modulo_2(exponent).any()
    if node.op_type in ("Add", "Max") and any(_is_above_zero(each) for each in floats):
        no_minus_zero = False
        if node.op_type == "Max":
            return True
    if node.op_type == "Relu":
        return not no_minus_zero
    if node.op_type == "Div":
        # 1 / -0.0 is -Inf.
        return keeps(floats[0]) and is_never_negative(
            floats[1], no_minus_zero=True, depth=depth - 1
        )
    if node.op_type == "Clip":
        return _is_clipped(node, no_minus_zero=no_minus_zero)
    return node.op_type in _KEEPING and all(map(keeps, floats))


def _is_clipped(node: Node, *, no_minus_zero: bool) -> bool:
    low, high = node.operand("min"), node.operand("max")
    # A maximum below the minimum is what all elements become.
    bounds = [low] if high is None else [low, high]
    numbers = [None if bound is None else bound.number for bound in bounds]
    return all(
        number is not None and (number > 0 or (number == 0 and not no_minus_zero))
        for number in numbers
    )
