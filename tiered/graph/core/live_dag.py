"""The networkx view of a graph: edits keep it up to date, and it is read-only otherwise."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from tiered.support.errors import ModelError
from tiered.support.loading import paused_collector

if TYPE_CHECKING:
    import networkx as nx

    Dag: TypeAlias = nx.DiGraph[Any]

Node = Hashable
"""A `tiered.graph.Node`, which this module knows nothing of."""


class Slot(NamedTuple):
    """One tensor on an edge: output number of the producer, input number of the user.

    `input` is None where a body of the user captures the tensor.
    """

    output: int
    input: int | None


def slot_order(slot: Slot) -> tuple[int, int]:
    return slot.output, -1 if slot.input is None else slot.input


@lru_cache(maxsize=4096)
def slot_of(output: int, index: int | None) -> Slot:
    """Return the shared Slot of two indices: a large graph needs only a few different ones."""
    return Slot(output, index)


class Attributes(dict[str, Any]):
    """The attributes of a node, an edge or the view, which only this module writes.

    A copy is a plain dict, so that a copy of the view may be edited.
    """

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ModelError(
            "graph.dag is read-only: edit the graph itself, or write to graph.dag.copy()"
        )

    __setitem__: Any = _refuse
    __delitem__: Any = _refuse
    __ior__: Any = _refuse
    clear: Any = _refuse
    pop: Any = _refuse
    popitem: Any = _refuse
    setdefault: Any = _refuse

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Refuse, but for no attributes: networkx adds each node and edge with this call."""
        if any(args) or kwargs:
            self._refuse()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def new_dag(nodes: Iterable[Node], edges: Iterable[tuple[Node, Node, list[Slot]]]) -> Dag:
    """Return the DiGraph of nodes; each edge has the sorted tuple of its slots."""
    import networkx as nx

    dag: Dag = nx.DiGraph()
    dag.graph = Attributes()
    dag.node_attr_dict_factory = dag.edge_attr_dict_factory = Attributes
    with paused_collector():
        dag.add_nodes_from(nodes)
        for tail, head, slots in edges:
            _set_slots(dag, tail, head, slots)
    return dag


def view_of(dag: Dag) -> Dag:
    """Return a live view of a graph that networkx does not edit; a copy of it is a plain graph."""
    import networkx as nx

    view: Dag = nx.graphviews.generic_graph_view(dag, create_using=nx.DiGraph)
    return view


def _set_slots(dag: Dag, tail: Node, head: Node, slots: list[Slot]) -> None:
    if len(slots) > 1:
        slots.sort(key=slot_order)
    dag.add_edge(tail, head)
    dict.__setitem__(dag.get_edge_data(tail, head), "slots", tuple(slots))


def add_slot(dag: Dag, tail: Node, head: Node, slot: Slot) -> None:
    edge = dag.get_edge_data(tail, head) or {"slots": ()}
    _set_slots(dag, tail, head, [*edge["slots"], slot])


def drop_slot(dag: Dag, tail: Node, head: Node, slot: Slot) -> None:
    slots = list(dag.get_edge_data(tail, head)["slots"])
    slots.remove(slot)
    if slots:
        _set_slots(dag, tail, head, slots)
    else:
        dag.remove_edge(tail, head)
