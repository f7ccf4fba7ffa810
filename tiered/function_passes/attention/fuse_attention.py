"""MatMul(Softmax(MatMul(q, k') * scale + mask), v)  =>  Attention(q, k, v, mask)"""

from typing import Any

from tiered import Graph, Skip, Value, broadcasts_into, const, op, rewrite, var

_plain = op.MatMul(var.q, var.transposed)
_scaled = op.Mul(_plain, const(name="factor")) | op.Div(_plain, const(name="divisor"))


def _masked(scores: Any) -> Any:
    return op.Add(scores, var.mask)


_scores = _masked(_scaled) | _scaled | _masked(_plain) | _plain
_weights = op.Softmax(_scores, axis=lambda axis: axis in (-1, 3))


@rewrite(
    op.MatMul(_weights, var.v)
    # A row of which everything is masked is 0, as the operator has it too.
    | op.MatMul(op.Where(op.IsNaN(_weights), 0.0, _weights), var.v),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_attention(
    graph: Graph,
    q: Value,
    transposed: Value,
    v: Value,
    mask: Value | None,
    factor: Value | None,
    divisor: Value | None,
) -> Value | Skip:
    """Attend at once.

    Rows of which everything is masked become 0, where the chain has NaN.
    """
    if q.rank != 4 or transposed.rank != 4 or v.rank != 4:
        return Skip("it is not of heads: batch, heads, sequence, size")
    outer = {(value.dim(0), value.dim(1)) for value in (q, transposed, v)}
    if len(outer) != 1 or None in (sizes := outer.pop()):
        return Skip("the numbers of batches or heads may differ")
    if not isinstance(sizes[0], int):
        return Skip("the batch may be empty, which the kernel of onnxruntime refuses")
    scale = 1.0
    for number, power in ((factor, 1), (divisor, -1)):
        if number is not None:
            array = number.const
            if array is None or array.size != 1 or not array.item() > 0:
                return Skip("the scale is not one positive number")
            scale = float(array.item()) ** power
    if mask is not None:
        whole = (q.dim(0), q.dim(1), q.dim(2), transposed.dim(3))
        shape = mask.shape
        if shape is None or shape[-2:] != whole[2:] or None in whole[2:]:
            return Skip("the mask does not say of each query what it sees")
        if not broadcasts_into(shape, whole):
            return Skip("the mask may be larger than the scores")
    return graph.op.Attention(q, _back(graph, transposed), v, mask, scale=scale)


def _back(graph: Graph, transposed: Value) -> Value:
    """Return k of the k that is ready to be multiplied with: its last two dims change places."""
    node = transposed.producer
    if node is None or node.op_type != "Transpose" or node.domain or not node.has_attr("perm"):
        return graph.op.Transpose(transposed, perm=[0, 1, 3, 2])
    perm = list(node.attr("perm"))
    perm[2], perm[3] = perm[3], perm[2]
    before = node.inputs[0]
    assert before is not None
    return before if perm == [0, 1, 2, 3] else graph.op.Transpose(before, perm=perm)
