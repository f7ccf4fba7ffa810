"""The rules of RNN, GRU and LSTM: initial states get a row for each sample."""

from __future__ import annotations

from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.rules.generic import common, mixes
from tiered.analysis.batching.sample_facts import BatchRows
from tiered.graph import Node


@BATCHES.rule("GRU", "LSTM", "RNN")
def recurrent(state: Following, node: Node) -> Made:
    """X [seq, batch, in], states [dirs, batch, hidden]; with layout 1 the batch comes first."""
    first = bool(node.attr("layout"))
    at = 0 if first else 1
    # X, the lengths, and the initial states; the others are weights.
    places = {0: at, 4: 0, 5: at, **({6: at} if node.is_op("LSTM") else {})}
    state.shared(node, *(slot for slot in range(len(node.inputs)) if slot not in places))
    found = {slot: state.rows(node, slot) for slot in places if node.input(slot) is not None}
    carried = {slot: rows for slot, rows in found.items() if rows is not None}
    rows = common(carried.values())
    for slot in found:
        if slot not in carried:
            state.spread(node, slot, rows.on(places[slot]))
        elif carried[slot].axis != places[slot]:
            raise mixes(node, slot, carried[slot])
    return [BatchRows(axis, *rows[1:]) for axis in (0 if first else 2, at, at)[: len(node.outputs)]]
