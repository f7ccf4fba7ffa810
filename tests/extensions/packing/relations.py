"""What the interpretation along sequences says of the values of a model, as text."""

from collections.abc import Iterable
from typing import Any

from tiered import Model
from tiered.extensions.packing.interpretation import Interpretation
from tiered.extensions.packing.packed_values import AbstractTensor, AxisRole, PackedSizes, Refused
from tiered.extensions.packing.rules import rule_of
from tiered.testing import parse

LETTERS = {
    None: ".", AxisRole.BATCH: "B", AxisRole.TOKEN: "T", AxisRole.FLAT: "F",
    AxisRole.SEQUENCE_FIRST: "Q",
    AxisRole.HEADS: "H",
}  # fmt: skip


def state_of(text: str, *, packed: Iterable[str] = ("x",), opset: int = 21) -> Interpretation:
    """Return the interpretation of a model, with the packed inputs [B, S, ...], not yet run."""
    model = Model.from_proto(parse(text, opset=opset))
    names = frozenset({"B", "S"})
    model.forget_types()
    model.dims.positive = names
    state = Interpretation(model.main, "S", frozenset({"B"}))
    for value in model.main.inputs:
        if value.name in packed:
            roles = (AxisRole.BATCH, AxisRole.TOKEN, *(None,) * ((value.rank or 2) - 2))
            state.facts[value] = AbstractTensor(roles)
    return state


def interpreted(text: str, *, packed: Iterable[str] = ("x",), opset: int = 21) -> Interpretation:
    """Return the interpretation of a model after its run."""
    state = state_of(text, packed=packed, opset=opset)
    state.run(rule_of)
    return state


def relation(state: Interpretation, name: str = "y") -> str:
    """Return the relation of a value as text: the letter of each axis, and what else is known."""
    fact = state.facts[state.graph.values[name]]
    if isinstance(fact, Refused):
        return f"no: {fact.reason}"
    if isinstance(fact, PackedSizes):
        return "pooled sizes" if fact.is_pooled else "sizes"
    marks = [
        "".join(LETTERS[role] for role in fact.roles),
        f"zeros={fact.zeros}" if fact.zeros is not None else "",
        f"index={','.join(map(str, fact.index))}" if fact.index is not None else "",
        "number" if fact.is_row_number else "",
        f"columns={len(fact.columns)}" if fact.columns is not None else "",
        "pooled" if fact.is_pooled else "",
        "chosen" if fact.chosen_by is not None else "",
    ]
    return " ".join(filter(None, marks))


def edits(state: Interpretation) -> list[str]:
    """Return the kinds of the edits, in order."""
    return [type(edit).__name__.removesuffix("Edit") for edit in state.edits]


CONSTANTS = (
    """int64 zero = {0}, int64 one = {1}, int64[1] l0 = {0}, int64[1] l1 = {1},
    int64[1] l2 = {2}, int64[1] m1 = {-1}, int64[1] end = {9223372036854775807}, float f0 = {0},
    float f1 = {1}, float[4] w = {1,1,1,1}, float[4,4] ww = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},
    float[16,4] table = {"""
    + ",".join(["1"] * 64)
    + "}"
)
"""Constants that the nodes of a test may read."""

PLACES = """s = Shape(x) b0 = Gather(s, zero) n0 = Gather(s, one) at = Range(zero, n0, one)
    rows = Range(zero, b0, one)"""
"""The positions `at`, and the numbers of rows."""


def of_nodes(nodes: str, inputs: str = "float[B,S,4] x") -> str:
    """Return a model of some nodes, with all constants; only a sink is an output."""
    return f"({inputs}) => (float out) <{CONSTANTS}> {{ {nodes} out = com.acme.Sink(x) }}"


def relation_of(nodes: str, inputs: str = "float[B,S,4] x", **options: Any) -> str:
    """Return the relation of y, which some nodes compute."""
    return relation(interpreted(of_nodes(nodes, inputs), **options))
