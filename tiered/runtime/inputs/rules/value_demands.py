"""What operators demand of the values that they read: one small function for each family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tiered.graph.queries.op_traits import REDUCTIONS
from tiered.runtime.inputs.graph_facts import Fact, InputDependence, numbers_of
from tiered.runtime.inputs.rules.demand import DEMANDS, OWN_AND_MICROSOFT, Demand

if TYPE_CHECKING:
    from tiered.graph import Node


_QLINEAR = {1: "positive", 4: "positive", 6: "positive"} | dict.fromkeys((2, 5, 7), "zero_point")
_TRIPS = 3  # iterations of a loop with an input as trip count


def demands(place: InputDependence, node: Node, slot: int, *, direct: bool) -> Iterator[Fact]:
    """Yield the constraints of `node` on the value at its input `slot`.

    Args:
        place: the value, and how it depends on the input's numbers.
        direct: the node reads the input itself, so that whole values can be prescribed.
    """
    if place.compared:
        if node.op_type in ("Where", "And", "Or", "Not"):
            yield Fact("mask", f"compared, then {node.op_type}")
        return
    rule = DEMANDS.of(node)
    for fact in () if rule is None else rule(place, node, slot):
        if fact.kind == "values" and not direct:
            yield Fact("size", f"{fact.why}, through other operators")
        elif fact.kind == "index" and place.counted:
            yield Fact("mask", f"counted by CumSum, then {fact.why}")
        else:
            yield fact


def _prescribed(slots: dict[int, tuple[str, float]]) -> Demand:
    """Return the demand of an operator that has one good value for each of some slots."""

    def demand(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
        if slot in slots:
            what, value = slots[slot]
            yield Fact("values", f"{node.op_type} {what}", values=(value,))

    return demand


def _kinds(slots: dict[int, str]) -> Demand:
    """Return the demand of an operator that wants values of a kind at some slots."""

    def demand(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
        if slot in slots:
            yield Fact(slots[slot], f"{node.op_type} input {slot}")

    return demand


@DEMANDS.rule("Sub")
def _subtract(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    """Yield that x of 1 - x is a mask."""
    if slot == 1:
        constant = numbers_of(node.input(0))
        if constant is not None and constant.size == 1 and float(constant.ravel()[0]) == 1:
            yield Fact("mask", "1 - x")


@DEMANDS.rule("Mul")
def _multiply(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    yield Fact("factor", node.op_type)


@DEMANDS.rule("Add")
def _add(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    yield Fact("addend", node.op_type)


@DEMANDS.rule(*REDUCTIONS)
def _reduce(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        yield Fact("values", f"{node.op_type} axes", values=(0, 1, 2, 3))


_rule = DEMANDS.rule

_rule("Div", "Mod")(_kinds({0: "dividend", 1: "divisor"}))
_rule("Log", "Sqrt")(_kinds({0: "domain"}))
_rule("And", "Or")(_kinds({0: "conjunct", 1: "conjunct"}))
_rule("Where")(_kinds({0: "chooser"}))
_rule("Not")(_kinds({0: "conjunct"}))
_rule("If")(_kinds({0: "condition"}))
_rule("BitShift", "Pow")(_kinds({1: "small"}))
_rule("BatchNormalization")(_kinds({4: "domain"}))
_rule("ConvInteger", "MatMulInteger")(_kinds({2: "zero_point", 3: "zero_point"}))
_rule("QLinearConv", domain=OWN_AND_MICROSOFT)(_kinds(_QLINEAR))
_rule("QLinearMatMul")(_kinds(_QLINEAR))
_rule("QuantizeLinear", "DequantizeLinear", domain=OWN_AND_MICROSOFT)(
    _kinds({1: "positive", 2: "zero_point"})
)
_rule("MultiHeadAttention", domain="com.microsoft")(_kinds({4: "mask"}))

_rule("HannWindow", "HammingWindow", "BlackmanWindow")(_prescribed({0: ("size", 10)}))
_rule("Tile")(_prescribed({1: ("repeat", 2)}))
_rule("ConstantOfShape")(_prescribed({0: ("size", 2)}))
_rule("Range", domain=OWN_AND_MICROSOFT)(
    _prescribed({0: ("start", 0), 1: ("limit", 5), 2: ("step", 1)})
)
_rule("CumProd", "CumSum")(_prescribed({1: ("axis", 0)}))
_rule("Trilu", domain=OWN_AND_MICROSOFT)(_prescribed({1: ("diagonal", 0)}))
_rule("Dropout")(_prescribed({1: ("ratio", 0.5), 2: ("training", 0)}))
_rule("Clip")(_prescribed({1: ("low", -1), 2: ("high", 1)}))
_rule("Loop")(_prescribed({0: ("trip count", _TRIPS), 1: ("condition", 1)}))
_rule("NonMaxSuppression")(_prescribed({2: ("boxes", 3), 3: ("IoU", 0.5), 4: ("score", 0.0)}))
_rule("SequenceAt", "SequenceErase")(_prescribed({1: ("position", 0)}))
_rule("SequenceInsert")(_prescribed({2: ("position", 0)}))
_rule("DFT")(_prescribed({1: ("length", 8), 2: ("axis", 1)}))
_rule("STFT")(_prescribed({1: ("step", 4), 3: ("length", 16)}))
_rule("MelWeightMatrix")(
    _prescribed(
        {
            0: ("bins", 8),
            1: ("length", 16),
            2: ("rate", 8192),
            3: ("low edge", 0),
            4: ("high edge", 4096),
        }
    )
)
