"""The primitive that exchanges one output of a graph, without a look at the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tiered.errors import ModelError
from tiered.graph.core import use_lists
from tiered.graph.core.journal import Edit
from tiered.graph.core.value import Value

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph


def exchange_output(graph: Graph, old: Value, new: Value) -> None:
    """Return `new` from the graph wherever it returns `old`; the declarations stay.

    Raises:
        ModelError: the graph does not see the new value, or does not return the old one.
    """
    if not graph.sees(new):
        raise ModelError(f"{new!r} cannot be an output of graph {graph.name!r}")
    places = tuple(_places(graph).get(old, ()))
    if not places:
        raise ModelError(f"{old.name!r} is not an output of graph {graph.name!r}")
    graph._log(Edit.EXCHANGE_GRAPH_OUTPUT, graph, new, old, places)
    write_exchanged_output(graph, old, new, places)


def write_exchanged_output(graph: Graph, old: Value, new: Value, places: Sequence[int]) -> None:
    found = _places(graph)
    _forget_declarations(graph, (old, new))
    for place in places:
        use_lists.drop_output_use(old, graph)
        graph._outputs[place] = new
        use_lists.add_output_use(new, graph)
    left = [place for place in found[old] if place not in places]
    if left:
        found[old] = left
    else:
        del found[old]
    found[new] = sorted([*found.get(new, ()), *places])
    for value in (old, new):
        _declare(graph, value)


def _places(graph: Graph) -> dict[Value, list[int]]:
    """Return at which places of the outputs each value is, ascending."""
    kept = graph._output_places
    if kept is not None and kept[0] is graph._outputs:
        return kept[1]
    found: dict[Value, list[int]] = {}
    for place, value in enumerate(graph._outputs):
        found.setdefault(value, []).append(place)
    graph._output_places = graph._outputs, found
    return found


def _forget_declarations(graph: Graph, values: Iterable[Value]) -> None:
    """Drop the value_info of values that is the declaration of an output."""
    infos, found = graph._output_infos, _places(graph)
    for value in values:
        if any(infos[place] is value.declared for place in found.get(value, ()) if infos):
            value.declared = None


def _declare(graph: Graph, value: Value) -> None:
    """Use the declaration of an output as the value_info of the value if it has none."""
    places = _places(graph).get(value)
    if places and graph._output_infos and value.declared is None and value.graph is graph:
        value.declared = graph._output_infos[places[0]]
