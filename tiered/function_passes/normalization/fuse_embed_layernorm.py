"""LayerNormalization(Gather(w, ids) + Gather(p, at) + ...)  =>  EmbedLayerNormalization(ids, at)"""

from typing import Any

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var


def _lookup(name: str) -> Any:
    return op.Gather(getattr(var, name), getattr(var, f"{name}_ids"))


_two = op.Add(_lookup("first"), _lookup("second"))
_added = op.Add(_two, _lookup("third")) | _two


@rewrite(
    op.LayerNormalization(_added.shared().bind("added"), var.scale, opt.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    makes=["com.microsoft::EmbedLayerNormalization"],
    numerics="reassociating",
)
def fuse_embed_layernorm(
    graph: Graph,
    node: Node,
    added: Node,
    first: Value,
    first_ids: Value,
    second: Value,
    second_ids: Value,
    third: Value | None,
    third_ids: Value | None,
    scale: Value,
    bias: Value | None,
) -> Value | Skip:
    """Gather the embeddings of words, segments and positions, add and normalise by one operator.

    Opt-in: onnxruntime's kernel takes longer than the separate nodes, and it rejects negative ids,
    which in Gather count from the end of a table. Other users of the sum read the third output.
    """
    shape = added.output.shape
    if shape is None or len(shape) != 3 or None in shape:
        return Skip("the sum is not [batch, sequence, size]")
    lookups = [(first, first_ids), (second, second_ids)]
    if third is not None and third_ids is not None:
        lookups.append((third, third_ids))
    if any(table.rank != 2 or table.dim(1) != shape[2] for table, _ in lookups):
        return Skip("the tables differ in vector size")
    # The positions are the ids that the batch shares, or else the last ones.
    lookups.sort(key=lambda lookup: lookup[1].shape != shape[:2])
    *others, (places, at) = lookups
    if any(ids.shape != shape[:2] for _, ids in others):
        return Skip("there is not one id per token")
    if not _is_one_each(graph, at, shape):
        return Skip("there is not one position per token")
    if int(node.attr("axis")) not in (-1, 2):
        return Skip("it is not over the last dim alone")
    if scale.shape != shape[2:] or (bias is not None and bias.shape != shape[2:]):
        return Skip("scale or bias is not per element")
    is_read = not added.output.has_one_user
    if is_read and any(value is not None and value.producer is not None for value in (scale, bias)):
        return Skip("scale or bias is computed, perhaps from the sum")
    assert scale.dtype is not None
    if bias is None:
        if not isinstance(shape[2], int):
            return Skip("the size of the missing bias is not known")
        bias = graph.constant(np.zeros(shape[2], DataType(scale.dtype).numpy))
    words, segments = others[0], others[1] if len(others) > 1 else (None, None)
    result, _, total = graph.op("com.microsoft").EmbedLayerNormalization(
        *(_short(graph, words[1]), _short(graph, segments[1])),
        *(words[0], places, segments[0], scale, bias, None, _short(graph, at)),
        outputs=3,
        epsilon=float(node.attr("epsilon")),
    )
    if is_read:
        graph.replace(added, [total])
    made: Value = result
    return made


def _is_one_each(graph: Graph, at: Value, shape: tuple[Any, ...]) -> bool:
    """Return whether there is one position id per token, for all sequences or for each."""
    length = at.dim(1) if at.dim(0) in (1, shape[0]) else None
    if isinstance(length, str) and isinstance(shape[1], str):
        return graph.model.dims.broadcast(shape[1], length) == shape[1]
    return bool(length == shape[1])


def _short(graph: Graph, ids: Value | None) -> Value | None:
    """Return ids as int32, the dtype of the kernel."""
    if ids is None or ids.dtype == DataType.INT32:
        return ids
    cast: Value = graph.op.Cast(ids, to=DataType.INT32)
    return cast
