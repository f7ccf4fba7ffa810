"""The dims of inputs that are symbolic in the model and yet decided by its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def weight_dims(graph: onnx.GraphProto) -> dict[str, int]:
    """Return the dims of inputs that a weight decides, by place: {"x[1]": 3}.

    Only operators that read the input directly count: Conv and ConvTranspose (channels), MatMul
    and Gemm (the contracted axis), BatchNormalization (channels), and RNN, GRU and LSTM (features).
    """
    weights = {i.name: tuple(i.dims) for i in graph.initializer}
    ranks = {
        i.name: len(i.type.tensor_type.shape.dim)
        for i in graph.input
        if i.name not in weights and i.type.tensor_type.HasField("shape")
    }
    found: dict[str, int] = {}
    for node in graph.node:
        if len(node.input) < 2:
            continue
        for slot, other in ((0, 1), (1, 0)):
            name, shape = node.input[slot], weights.get(node.input[other])
            if name not in ranks or shape is None:
                continue
            decided = _decided(node, slot, ranks[name], shape)
            if decided is not None:
                found.setdefault(f"{name}[{decided[0]}]", decided[1])
    return found


def _decided(
    node: onnx.NodeProto, slot: int, rank: int, weight: tuple[int, ...]
) -> tuple[int, int] | None:
    """Return (axis of the input, its size) as the weight beside it has it."""
    attributes = {a.name: a.i for a in node.attribute}
    kind = node.op_type
    if kind == "MatMul" and rank >= 1 and weight:
        if slot == 0:
            return rank - 1, weight[-2] if len(weight) > 1 else weight[0]
        return max(rank - 2, 0), weight[-1]
    if kind == "Gemm" and rank == 2 and len(weight) == 2:
        own, beside = ("transA", "transB") if slot == 0 else ("transB", "transA")
        axis = 1 - attributes.get(own, 0) if slot == 0 else attributes.get(own, 0)
        inner = attributes.get(beside, 0) if slot == 0 else 1 - attributes.get(beside, 0)
        return axis, weight[inner]
    if slot != 0:
        return None
    if kind == "Conv" and rank > 1 and len(weight) > 1:
        return 1, weight[1] * attributes.get("group", 1)
    if kind in ("ConvTranspose", "BatchNormalization") and rank > 1 and weight:
        return 1, weight[0]
    if kind in ("RNN", "GRU", "LSTM") and rank == 3 and len(weight) == 3:
        return 2, weight[2]
    return None
