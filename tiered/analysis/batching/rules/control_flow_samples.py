"""The rules of If, Loop and Scan: the batch goes through their bodies."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.rules.sample_sequences import begins_empty
from tiered.analysis.batching.sample_facts import (
    BatchRefusal,
    BatchRows,
    Counted,
    Fact,
    RefusedTensor,
)
from tiered.graph import Graph, Node, Value


@BATCHES.rule("If")
def branches(state: Following, node: Node) -> Made:
    """If: both branches give each output the samples on the same axis."""
    _check_same(state, node, node.inputs[0], "condition")
    for body in node.bodies:
        state.follow(body)
    made: list[Fact | None] = []
    for at in range(len(node.outputs)):
        facts = [state.facts.get(body.outputs[at]) for body in node.bodies]
        made.append(_merged(state, node, at, facts))
    return made


def _merged(state: Following, node: Node, at: int, facts: Sequence[Fact | None]) -> Fact | None:
    for kind in (RefusedTensor, Counted):
        found = next((fact for fact in facts if isinstance(fact, kind)), None)
        if found is not None:
            return found
    rows = next((fact for fact in facts if isinstance(fact, BatchRows)), None)
    if rows is None:
        return None
    try:
        for body, fact in zip(node.bodies, facts, strict=True):
            _agree(state, body, at, rows, fact)
    except BatchRefusal as refusal:
        return RefusedTensor(node, str(refusal))
    return rows


def _agree(state: Following, body: Graph, at: int, rows: BatchRows, fact: Fact | None) -> None:
    """Let an output of a body carry the samples as wanted.

    Raises:
        Refusal: it carries them in another way.
    """
    if fact is None:
        state.check_uniform(body.outputs[at], rows)
        state.edits.append(lambda to: to.spread_output(body, at, rows))
        state.outputs[body, at] = rows
    elif fact != rows:
        raise BatchRefusal(f"{body.outputs[at].name!r} has the samples on another axis")


def _check_same(state: Following, node: Node, value: Value | None, what: str) -> None:
    fact = state.facts.get(value)
    if isinstance(fact, RefusedTensor):
        raise BatchRefusal(fact.reason, fact)
    if isinstance(fact, Counted):
        raise BatchRefusal(f"its {what} depends on the size of the batch")
    if fact is not None:
        raise BatchRefusal(f"its {what} differs from sample to sample")


@BATCHES.rule("Loop")
def loop(state: Following, node: Node) -> Made:
    """Loop: a state that gets samples in one iteration carries them from the start."""
    for slot, what in ((0, "trip count"), (1, "condition")):
        _check_same(state, node, node.input(slot), what)
    (body,) = node.bodies
    count = len(node.inputs) - 2
    made = _through(state, node, body, 2, range(2, 2 + count), 1)
    _check_same(state, node, body.outputs[0], "condition")
    return [*made[:count], *(_stacked(fact, 0) for fact in made[count:])]


@BATCHES.rule("Scan")
def scan(state: Following, node: Node) -> Made:
    """Scan: along another axis than that of the batch."""
    if node.owner.opset() < 9:
        raise BatchRefusal("a Scan of opset 8 has a batch of its own")
    (body,) = node.bodies
    scanned = node.attr("num_scan_inputs")
    count = len(node.inputs) - scanned
    along = node.attr("scan_input_axes", None) or (0,) * scanned
    for number, value in enumerate(body.inputs[count:]):
        slot = count + number
        rows = state.rows(node, slot)
        axis = along[number] % max(state.rank(node.inputs[slot]), 1)
        if rows is not None and rows.axis == axis:
            raise BatchRefusal("it goes from sample to sample")
        state.learn(value, None if rows is None else rows.on(rows.axis - (axis < rows.axis)))
    made = _through(state, node, body, 0, range(count), 0)
    outputs = node.attr("scan_output_axes", None) or (0,) * (len(node.outputs) - count)
    stacked = [
        _stacked(fact, axis % (state.rank(value) + 1))
        for fact, axis, value in zip(made[count:], outputs, body.outputs[count:], strict=True)
    ]
    return [*made[:count], *stacked]


def _stacked(fact: Fact | None, axis: int) -> Fact | None:
    """Return what is known of the values of all iterations, joined along a new axis."""
    return fact.on(fact.axis + (axis <= fact.axis)) if isinstance(fact, BatchRows) else fact


def _through(
    state: Following, node: Node, body: Graph, skipped: int, slots: range, first: int
) -> list[Fact | None]:
    """Follow the batch through the body until the states are the same before and after it.

    Args:
        state: the analysis.
        node: the Loop or Scan.
        body: its body.
        skipped: how many inputs of the body come before the states.
        slots: the operands that are the initial states.
        first: the first output of the body that is a state.
    """
    inputs = body.inputs[skipped : skipped + len(slots)]
    given = [state.facts.get(node.inputs[slot]) for slot in slots]
    known, edits = list(given), len(state.edits)
    while True:
        del state.edits[edits:]
        for value, fact in zip(inputs, known, strict=True):
            state.learn(value, fact)
        state.follow(body)
        made = [state.facts.get(value) for value in body.outputs[first:]]
        after = [_next(node, *pair) for pair in zip(known, made, strict=False)]
        if after == known:
            break
        known = after
    for at, fact in enumerate(known):
        if isinstance(fact, BatchRows):
            if given[at] is None and not begins_empty(node.inputs[slots[at]]):
                state.spread(node, slots[at], fact)
            _agree(state, body, first + at, fact, made[at])
    return [*known, *made[len(known) :]]


def _next(node: Node, before: Fact | None, after: Fact | None) -> Fact | None:
    """Return what is known of a state in all iterations so far."""
    if after is None or after == before or isinstance(before, RefusedTensor):
        return before
    if before is None and isinstance(after, BatchRows):
        return after
    if isinstance(after, RefusedTensor):
        return after
    return RefusedTensor(node, "a state has the samples in another way in the next iteration")
