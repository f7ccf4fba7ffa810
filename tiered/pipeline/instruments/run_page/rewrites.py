"""The rewrites of a run as compact data, which the script of the page draws.

strings: all names and other text, each once; numbers below are places in this list.
states: [id, operator, name, [inputs], [outputs]], the nodes at one moment, each once.
types: {value: type}; a type ends in " const" if the contents are known.
rewrites: [number, pass, law, graph, anchor, undone, before, after, left_out, types that differ
    from `types`, initializers added, removed]. `before` and `after` are the items of a diagram:
    [kind, state or value, layer, column]; kinds: 0 untouched, 1 changed, 2 removed or new,
    3 a value that no node of the diagram computes or reads.
reasons: {pass: why its rewrites are right}.
proofs: {number of a rewrite: how it was proved}.
nodes: [id, operator, name], nodes of the result that no rewrite touched.
total: how many rewrites there were; `rewrites` may be the first part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tiered.pipeline.instruments.tracing.events import Rewrite
from tiered.support.pages.diagram import places_of
from tiered.support.pages.render import short
from tiered.support.pages.sections import Section

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.pipeline.instruments.tracing.changes import NodeState
    from tiered.pipeline.instruments.tracing.surroundings import ValueState

BUDGET = 4_000_000
"""Bytes of the rewrites on a page."""
NODE_BUDGET = 400_000
"""Bytes of the nodes that no rewrite touched."""
MOST_NODES = 24
"""Nodes of one diagram."""
MOST_NEAR = 12
"""Untouched nodes of one diagram."""
MOST_INPUTS = 40
"""Inputs or outputs of one node that are listed."""

Item = tuple[int, int, int, int]


class Words(NamedTuple):
    """What the page calls things.

    Attributes:
        unit: a group of changed nodes.
        by: how it changes nodes: "removed by".
        search: what the search finds.
        about: the list of units, for a screen reader; none: if it is empty.
        untouched, old, new, kept, gone: sentences about one node.
    """

    unit: str
    by: str
    search: str
    about: str
    none: str
    untouched: str
    old: str
    new: str
    kept: str
    gone: str

    def section(self, title: str, total: int) -> Section:
        """Return the section of the list."""
        data = {"total": total, "unit": self.unit, "about": self.about, "none": self.none}
        return Section(title, "rewrites.html.j2", data)


OF_RUN = Words(
    unit="rewrite",
    by="by",
    search="node, operator or pass",
    about="Rewrites in the order of the run",
    none="The run made no rewrite.",
    untouched="It is in the input file. No rewrite on this page changed it.",
    old="It is in the input file.",
    new="A rewrite made it.",
    kept="It is in the result.",
    gone="It is not in the result.",
)


class _Encoder:
    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.numbers: dict[str, int] = {}  # by the text before it was cut
        self.states: dict[NodeState, int] = {}
        self.state_rows: list[list[Any]] = []
        self.types: dict[int, int] = {}
        self.size = 0

    def string(self, text: str) -> int:
        known = self.numbers.get(text)
        if known is not None:
            return known
        shown = short(text)
        number = self.strings.get(shown)
        if number is None:
            number = self.strings[shown] = len(self.strings)
            self.size += len(json.dumps(shown)) + 1
        self.numbers[text] = number
        return number

    def state(self, state: NodeState) -> int:
        number = self.states.get(state)
        if number is None:
            number = self.states[state] = len(self.state_rows)
            row = [
                state.id,
                self.string(state.op_type),
                self.string(state.label),
                [self.string(name) if name else -1 for name in state.inputs[:MOST_INPUTS]],
                [self.string(name) if name else -1 for name in state.outputs[:MOST_INPUTS]],
            ]
            self.state_rows.append(row)
            self.size += len(json.dumps(row, separators=(",", ":"))) + 1
        return number

    def rewrite(self, rewrite: Rewrite) -> list[Any]:
        near = rewrite.around.nodes
        pairs = [change for change in rewrite.changes if change.before is not None]
        changed = {change.after.id for change in pairs if change.after is not None}
        before, fewer = self.items(rewrite.before, rewrite.after, near, changed)
        after, fewer_after = self.items(rewrite.after, rewrite.before, near, changed)
        return [
            rewrite.number,
            self.string(rewrite.pass_name),
            self.string(rewrite.law),
            self.string(rewrite.graph),
            self.string(rewrite.anchor),
            int(rewrite.undone),
            before,
            after,
            fewer + fewer_after,
            self.typed(rewrite.around.values),
            [self.string(name) for name in rewrite.added[:MOST_NODES]],
            [self.string(name) for name in rewrite.removed[:MOST_NODES]],
        ]

    def typed(self, values: dict[str, ValueState]) -> dict[str, int]:
        """Return the types that are other ones than those on record, and record new ones."""
        others = {}
        for name, state in values.items():
            if state.type is None:
                continue
            value = self.string(name)
            kind = self.string(f"{state.type}{' const' if state.is_constant else ''}")
            known = self.types.setdefault(value, kind)
            if known != kind:
                others[str(value)] = kind
        return others

    def items(
        self,
        states: Sequence[NodeState],
        others: Sequence[NodeState],
        near: Sequence[NodeState],
        changed: set[int],
    ) -> tuple[list[Item], int]:
        """Return the items of a diagram, and how many nodes were left out.

        A side without nodes shows the neighbours of the nodes of the other side.
        """
        touched = states[:MOST_NODES]
        around = touched or others[:MOST_NODES]
        inner = [name for state in around for name in (*state.inputs, *state.outputs) if name]
        names = set(inner)
        beside = [state for state in near if not names.isdisjoint((*state.inputs, *state.outputs))][
            :MOST_NEAR
        ]
        shown = [*touched, *beside]
        producer = {name: state for state in shown for name in state.outputs if name}
        read = {name for state in shown for name in state.inputs}
        values = [name for name in dict.fromkeys(inner) if (name in producer) != (name in read)]
        values = values[: MOST_NODES * 2]
        at = {state: place for place, state in enumerate(shown)}
        beyond = {name: place for place, name in enumerate(values, len(shown))}
        edges: list[tuple[int, int]] = []
        for place, state in enumerate(shown):
            for name in state.inputs:
                if name in producer:
                    edges.append((at[producer[name]], place))
                elif name in beyond:
                    edges.append((beyond[name], place))
            edges += [(place, beyond[name]) for name in state.outputs if name in beyond]
        places = places_of(len(shown) + len(values), tuple(edges))
        items: list[Item] = []
        for place, state in enumerate(shown):
            kind = 0 if place >= len(touched) else 1 if state.id in changed else 2
            items.append((kind, self.state(state), *places[place]))
        items += [(3, self.string(name), *places[place]) for name, place in beyond.items()]
        return items, len(states) - len(touched)


def rewrites_data(
    rewrites: Iterable[Rewrite],
    reasons: Mapping[str, str],
    model: Model | None = None,
    proofs: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """Return the data of rewrites for the script of a page, the first part if they are many.

    Args:
        rewrites: in the order in which they were made.
        reasons: why each pass is right, by its name.
        model: the result; its nodes can then be found too if no rewrite touched them.
        proofs: how each rewrite was proved, by its number.
    """
    encoder, rows, total = _Encoder(), [], 0
    used: dict[str, None] = {}
    for rewrite in rewrites:
        total += 1
        if encoder.size < BUDGET:
            row = encoder.rewrite(rewrite)
            encoder.size += len(json.dumps(row, separators=(",", ":"))) + 1
            rows.append(row)
            used[rewrite.pass_name] = None
    nodes = [] if model is None else _untouched(model, encoder)
    return {
        "strings": list(encoder.strings),
        "states": encoder.state_rows,
        "types": {str(value): kind for value, kind in encoder.types.items()},
        "rewrites": rows,
        "reasons": {name: reasons[name] for name in used if name in reasons},
        "proofs": {str(row[0]): proofs[row[0]] for row in rows if proofs and row[0] in proofs},
        "nodes": nodes,
        "total": total,
    }


def _untouched(model: Model, encoder: _Encoder) -> list[list[int]]:
    known = {row[0] for row in encoder.state_rows}
    limit = encoder.size + NODE_BUDGET
    rows = []
    for graph in model.graphs():
        for node in graph.nodes:
            if node.id in known or encoder.size >= limit:
                continue
            operator = node.operator
            rows.append([node.id, encoder.string(operator), encoder.string(node.label)])
            encoder.size += 20
    return rows
