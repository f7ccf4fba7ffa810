"""What operators demand of the values that they read: one small function for each family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tiered.runtime.inputs.graph_facts import Fact, Place, numbers_of
from tiered.runtime.inputs.rules import indexing, sizes

if TYPE_CHECKING:
    from tiered.graph import Node

Demand = Callable[[Place, "Node", int], Iterator[Fact]]

_REDUCTIONS = tuple(
    f"Reduce{of}"
    for of in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
)
_QLINEAR = {1: "positive", 4: "positive", 6: "positive"} | dict.fromkeys((2, 5, 7), "zero_point")
_TRIPS = 3  # iterations of a loop with an input as trip count


def demands(place: Place, node: Node, slot: int, *, direct: bool) -> Iterator[Fact]:
    """Yield the constraints of `node` on the value at its input `slot`.

    Args:
        place: the value, and how it depends on the input's numbers.
        direct: the node reads the input itself, so that whole values can be prescribed.
    """
    if place.compared:
        if node.op_type in ("Where", "And", "Or", "Not"):
            yield Fact("mask", f"compared, then {node.op_type}")
        return
    for fact in _BY_OP.get(node.op_type, _nothing)(place, node, slot):
        if fact.kind == "values" and not direct:
            yield Fact("size", f"{fact.why}, through other operators")
        elif fact.kind == "index" and place.counted:
            yield Fact("mask", f"counted by CumSum, then {fact.why}")
        else:
            yield fact


def _nothing(place: Place, node: Node, slot: int) -> Iterator[Fact]:
    return iter(())


def _prescribed(slots: dict[int, tuple[str, float]]) -> Demand:
    """Return the demand of an operator that has one good value for each of some slots."""

    def demand(place: Place, node: Node, slot: int) -> Iterator[Fact]:
        if slot in slots:
            what, value = slots[slot]
            yield Fact("values", f"{node.op_type} {what}", values=(value,))

    return demand


def _kinds(slots: dict[int, str]) -> Demand:
    """Return the demand of an operator that wants values of a kind at some slots."""

    def demand(place: Place, node: Node, slot: int) -> Iterator[Fact]:
        if slot in slots:
            yield Fact(slots[slot], f"{node.op_type} input {slot}")

    return demand


def _subtract(place: Place, node: Node, slot: int) -> Iterator[Fact]:
    """Yield that x of 1 - x is a mask."""
    if slot == 1:
        constant = numbers_of(node.input(0))
        if constant is not None and constant.size == 1 and float(constant.reshape(-1)[0]) == 1:
            yield Fact("mask", "1 - x")


def _multiply(place: Place, node: Node, slot: int) -> Iterator[Fact]:
    yield Fact("factor", node.op_type)


def _add(place: Place, node: Node, slot: int) -> Iterator[Fact]:
    yield Fact("addend", node.op_type)


def _reduce(place: Place, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        yield Fact("values", f"{node.op_type} axes", values=(0, 1, 2, 3))


_BY_OP: dict[str, Demand] = {
    **dict.fromkeys(("Gather", "GatherElements", "GatherBlockQuantized"), indexing.gather),
    **dict.fromkeys(("ScatterElements", "Scatter"), indexing.scatter_elements),
    **dict.fromkeys(("GatherND", "ScatterND"), indexing.gather_nd),
    **dict.fromkeys(("EmbedLayerNormalization", "QEmbedLayerNormalization"), indexing.embed),
    **dict.fromkeys(("RNN", "GRU", "LSTM", "ReverseSequence"), indexing.lengths),
    **dict.fromkeys(("Resize", "Upsample"), sizes.resize),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), sizes.squeeze_axes),
    **dict.fromkeys(("Split", "SplitToSequence"), sizes.split),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(("Div", "Mod"), _kinds({0: "dividend", 1: "divisor"})),
    **dict.fromkeys(("Log", "Sqrt"), _kinds({0: "domain"})),
    **dict.fromkeys(("And", "Or"), _kinds({0: "conjunct", 1: "conjunct"})),
    **dict.fromkeys(
        ("QuantizeLinear", "DequantizeLinear"), _kinds({1: "positive", 2: "zero_point"})
    ),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), indexing.classes),
    **dict.fromkeys(
        ("HannWindow", "HammingWindow", "BlackmanWindow"), _prescribed({0: ("size", 10)})
    ),
    "OneHot": indexing.one_hot,
    "RoiAlign": indexing.rois,
    "RotaryEmbedding": indexing.rotary,
    "MaxUnpool": indexing.unpool,
    "GroupQueryAttention": indexing.group_query,
    "Reshape": sizes.reshape,
    "Expand": sizes.expand,
    "Pad": sizes.pads,
    "Slice": sizes.slice,
    "TopK": sizes.top_k,
    "Where": _kinds({0: "chooser"}),
    "Not": _kinds({0: "conjunct"}),
    "Sub": _subtract,
    "Mul": _multiply,
    "Add": _add,
    "Tile": _prescribed({1: ("repeat", 2)}),
    "ConstantOfShape": _prescribed({0: ("size", 2)}),
    "Range": _prescribed({0: ("start", 0), 1: ("limit", 5), 2: ("step", 1)}),
    "CumSum": _prescribed({1: ("axis", 0)}),
    "Trilu": _prescribed({1: ("diagonal", 0)}),
    "Dropout": _prescribed({1: ("ratio", 0.5), 2: ("training", 0)}),
    "Clip": _prescribed({1: ("low", -1), 2: ("high", 1)}),
    "Loop": _prescribed({0: ("trip count", _TRIPS), 1: ("condition", 1)}),
    "NonMaxSuppression": _prescribed({2: ("boxes", 3), 3: ("IoU", 0.5), 4: ("score", 0.0)}),
    "SequenceAt": _prescribed({1: ("position", 0)}),
    "SequenceInsert": _prescribed({2: ("position", 0)}),
    "SequenceErase": _prescribed({1: ("position", 0)}),
    "If": _kinds({0: "condition"}),
    "BitShift": _kinds({1: "small"}),
    "Pow": _kinds({1: "small"}),
    "BatchNormalization": _kinds({4: "domain"}),
    "Attention": indexing.attention,
    "AffineGrid": sizes.affine_grid,
    "ArrayFeatureExtractor": indexing.last_axis,
    "CumProd": _prescribed({1: ("axis", 0)}),
    "DFT": _prescribed({1: ("length", 8), 2: ("axis", 1)}),
    "STFT": _prescribed({1: ("step", 4), 3: ("length", 16)}),
    "MelWeightMatrix": _prescribed(
        {
            0: ("bins", 8),
            1: ("length", 16),
            2: ("rate", 8192),
            3: ("low edge", 0),
            4: ("high edge", 4096),
        }
    ),
    **dict.fromkeys(("QLinearConv", "QLinearMatMul"), _kinds(_QLINEAR)),
    **dict.fromkeys(("ConvInteger", "MatMulInteger"), _kinds({2: "zero_point", 3: "zero_point"})),
    "MultiHeadAttention": _kinds({4: "mask"}),
}
