"""The taken names of a model, and fresh names, which depend only on the taken ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tiered.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.value import Value


class Names:
    """A multiset of names; sibling bodies may each use the same one."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        # For each base: every suffix below this number is taken.
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    @contextmanager
    def kept_on_error(self) -> Iterator[None]:
        """Release the names that the block took if it raises; the exception propagates."""
        taken = dict(self._taken)
        try:
            yield
        except BaseException:
            self._taken = taken
            raise

    def is_unique(self, name: str) -> bool:
        """Return whether the name is taken exactly once."""
        return self._taken.get(name) == 1

    def take(self, name: str) -> None:
        """Note one more bearer of the name."""
        self._taken[name] = self._taken.get(name, 0) + 1

    def release(self, name: str) -> None:
        """Note one bearer less; a free name can be given again, so that undo changes no name."""
        count = self._taken[name] - 1
        if count:
            self._taken[name] = count
            return
        del self._taken[name]
        base, _, suffix = name.rpartition("_")
        first = self._next.get(base)
        if first is not None and suffix.isdecimal() and int(suffix) < first:
            self._next[base] = int(suffix)

    def fresh(self, base: str) -> str:
        """Return `base`, or the first free of `base_1`, `base_2`, ...; it is not yet taken."""
        if base not in self._taken:
            return base
        number = self._next.get(base, 1)
        while f"{base}_{number}" in self._taken:
            number += 1
        self._next[base] = number
        return f"{base}_{number}"


def check_free(graph: Graph, name: str, bearer: Value | None = None) -> None:
    """Check a new name of a value against the names of its graph, outer graphs and bodies.

    Args:
        graph: the graph of the value, now or after the edit.
        name: the new name.
        bearer: the value, if it is already in the model.

    Raises:
        ModelError: the name is empty or taken: it would shadow another value, or be shadowed.
    """
    if not name:
        raise ModelError(f"a value of graph {graph.name!r} needs a name that is not empty")
    if name not in graph.model.names:
        return
    if graph.value(name) not in (None, bearer) or _is_below(graph, name, bearer):
        raise ModelError(f"graph {graph.name!r} or an outer graph already has a value {name!r}")
    if _is_file_name(graph, name) or (bearer is not None and is_hidden(bearer, name)):
        raise ModelError(f"{name!r} is the name of an input or output of a body in the file")


def _is_file_name(graph: Graph, name: str) -> bool:
    """Return whether the graph, or an outer graph, has another value with this name in the file."""
    around: Graph | None = graph
    while around is not None:
        if name in around.file_names.values():
            return True
        around = around.parent
    return False


def is_hidden(value: Value, name: str) -> bool:
    """Return whether a body that reads the value has a value of its own with this name."""
    readers: list[Graph | None] = [node.graph for node in value._users.values()]
    for reader in (*readers, *value.output_of):
        graph = reader
        while graph is not None and graph is not value.graph:
            if name in graph.file_names.values():
                return True
            graph = graph.parent
    return False


def _is_below(graph: Graph, name: str, bearer: Value | None) -> bool:
    pending = [graph]
    while pending:
        for owner in pending.pop()._owners.values():
            for body in owner.bodies:
                if body._values.get(name) not in (None, bearer):
                    return True
                pending.append(body)
    return False
