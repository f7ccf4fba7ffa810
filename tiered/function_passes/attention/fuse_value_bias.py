"""Softmax(s) (v + b) w + c  =>  Softmax(s) v w + c', if b is the same for all keys"""

import numpy as np

from tiered import Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.function_passes.attention._addends import (
    Addend,
    addend_at_use,
    is_second_factor,
    moved_addend,
    use_behind,
)


@rewrite(
    op.Add(var.x, const(name="bias")),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def fuse_value_bias(graph: Graph, node: Node, x: Value, bias: Value) -> Value | Skip:
    """Add the bias of values behind the projection of the results: c' is c + b w.

    The weights of a Softmax have the sum 1, so each weighted sum of v + b has the addend b.
    """
    used = use_behind(node.output)
    if isinstance(used, Skip):
        return used
    if not is_second_factor(*used):
        return Skip("no product of weights and values follows")
    found = addend_at_use(node, x, bias)
    if isinstance(found, Skip):
        return found
    values, product, _ = found
    reason = _why_not_average(values, product)
    if reason is not None:
        return reason
    after = moved_addend(Addend(product.output, values.numbers))
    if isinstance(after, Skip):
        return after
    results, projection, slot = after
    if slot != 0 or any(results.varies_along(axis) for axis in range(results.numbers.ndim - 1)):
        return Skip("the addend is not the same for all results")
    refused = _moved_into(graph, results, projection)
    return refused or x


def _why_not_average(values: Addend, product: Node) -> Skip | None:
    """Return why a node does not average values with weights of the sum 1; None if it does."""
    weights, softmax = product.given(0), product.producer(0)
    if softmax is None or not softmax.is_op("Softmax") or not weights.rank:
        return Skip("no Softmax makes the weights")
    if softmax.attr("axis") not in (-1, weights.rank - 1):
        return Skip("the sums of the weights are not 1")
    if values.varies_along(-2):
        return Skip("the addend is not the same for all keys")
    keys, queries = values.value.dim(-2), weights.dim(-2)
    # Without keys, a sum is 0; without queries too, nothing is summed.
    if not (isinstance(keys, int) and keys > 0) and (keys is None or keys != queries):
        return Skip("there may be queries without a key")
    if product.output.rank != values.numbers.ndim:
        return Skip("the weights have other dims")
    return None


def _moved_into(graph: Graph, results: Addend, projection: Node) -> Skip | None:
    """Add to the bias of a projection what its operand lacks; return why not, if it has none."""
    matrix = projection.const(1)
    after, slot = projection, 2
    if projection.is_op("MatMul") and projection.output.has_one_user:
        after = projection.output.users[0].node
        slot = int(after.inputs[0] is projection.output)
    elif matrix is not None and projection.attributes.get("transB"):
        matrix = matrix.T
    is_gemm = projection.is_op("Gemm") and {*projection.attributes} <= {"transB"}
    if not (is_gemm if after is projection else after.is_op("Add")):
        return Skip("no projection with a bias follows")
    old = after.input(slot)
    if matrix is None or matrix.ndim != 2 or old is None or old.const is None:
        return Skip("matrix and bias of the projection are not constants")
    if old.const.shape != matrix.shape[1:]:
        return Skip("the bias of the projection is not a vector")
    vector = np.broadcast_to(results.numbers.ravel(), matrix.shape[:1])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = old.const.astype(np.float64) + vector @ matrix.astype(np.float64)
        made = sums.astype(old.const.dtype)
    if not np.isfinite(made.astype(np.float64)).all():
        return Skip("the bias of the projection would not be finite")
    graph.set_input(after, slot, graph.constant(made, old.name))
    return None
