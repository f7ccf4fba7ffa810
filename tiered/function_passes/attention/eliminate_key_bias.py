"""Softmax(q (k + b)')  =>  Softmax(q k'), if b is the same for all keys"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tiered import DataType, Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.function_passes.attention._addends import addend_at_use, is_second_factor, use_behind
from tiered.graph.queries.op_traits import MOVES_FIRST

_MOST_STEPS: Final = 4

# What is added to keys or scores: numbers like theirs, or masks so large that no score is seen
# beside them. In float32, scores beside -10,000 are rounded to thousandths; in float16, beside -100
# to sixteenths.
_SMALL: Final = 1e3
_SMALL_FOR_HALVES: Final = 16
_LARGE: Final = 1e30


@rewrite(
    op.Add(var.x, const(name="bias")),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def eliminate_key_bias(graph: Graph, node: Node, x: Value, bias: Value) -> Value | Skip:
    """Drop the bias of keys: it adds q b' to all scores of a query, which a Softmax does not see.

    Softmax(s + c) is Softmax(s) for a number c, and no matter what a mask adds to s. Numbers beside
    which keys or scores are rounded stay: over 1,000, and over 16 in types of 16 bits.
    """
    used = use_behind(node.output)
    if isinstance(used, Skip):
        return used
    if not is_second_factor(*used):
        return Skip("no product of queries and keys follows")
    found = addend_at_use(node, x, bias)
    if isinstance(found, Skip):
        return found
    keys, product, _ = found
    if keys.varies_along(-1):
        return Skip("the addend is not the same for all keys")
    if (np.abs(keys.numbers) > _small(x)).any():
        return Skip("beside the addend, keys are rounded")
    reason = _why_not_scores(product.output)
    return x if reason is None else reason


def _why_not_scores(scores: Value) -> Skip | None:
    """Return why a value is not the scores of a Softmax over its last axis; None if it is."""
    for _ in range(_MOST_STEPS):
        if not scores.has_one_user:
            return Skip("the scores have other consumers")
        node = scores.users[0].node
        if node.is_op("Softmax"):
            last = node.attr("axis") in (-1, (scores.rank or 0) - 1)
            return None if last else Skip("the Softmax is not over the keys")
        reason = _why_not_scores_still(node, scores)
        if reason is not None:
            return reason
        scores = node.output
    return Skip("more than {} operators precede the Softmax", _MOST_STEPS)


def _why_not_scores_still(node: Node, scores: Value) -> Skip | None:
    """Return why a number added to all scores of a query is none in the result of a node."""
    is_binary = not node.domain and node.op_type in ("Add", "Div", "Mul")
    if not is_binary or node.graph is not scores.graph or node.output.rank != scores.rank:
        return Skip("no Softmax follows")
    other = node.given(int(node.inputs[0] is scores))
    if node.op_type == "Add":
        numbers = _numbers(other)
        if numbers is None:
            return Skip("the numbers of a mask are not known")
        sizes = np.abs(numbers)
        if ((sizes > _small(scores)) & (sizes < _LARGE)).any():
            return Skip("beside the numbers of a mask, scores are rounded")
        return None
    factor = other.const
    is_scale = node.op_type == "Mul" or node.inputs[0] is scores
    if not is_scale or factor is None or factor.size != 1 or not 0 < abs(factor.item()) < np.inf:
        return Skip("the scores are not scaled by one number")
    return None


def _small(value: Value) -> float:
    """Return up to which size numbers may be added to a value and hardly round it."""
    is_half = value.dtype not in (DataType.FLOAT, DataType.DOUBLE)
    return _SMALL_FOR_HALVES if is_half else _SMALL


def _numbers(mask: Value, depth: int = 8) -> NDArray[np.float64] | None:
    """Return the numbers of all constants that make up a mask; None if it has other parts."""
    node = mask.producer
    if mask.const is not None:
        return mask.const.astype(np.float64).ravel()
    if node is None or node.domain or not depth:
        return None
    if node.op_type in MOVES_FIRST:
        parts = [node.input(0)]
    elif node.op_type == "Where":
        parts = [node.input(1), node.input(2)]
    elif node.op_type in ("Add", "Concat"):
        parts = list(node.inputs)
    else:
        return None
    known = [None if part is None else _numbers(part, depth - 1) for part in parts]
    found = [numbers for numbers in known if numbers is not None]
    return np.concatenate(found) if len(found) == len(known) else None
