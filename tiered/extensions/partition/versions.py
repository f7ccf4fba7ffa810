"""What an IR version has: local functions and metadata of nodes; and free names of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.marks import METADATA_SINCE
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph import Graph, Node
    from tiered.graph.core.model import ModelState

DOMAIN: Final = "tiered.partition"
"""The domain of the functions of partitions without a target."""


def check_metadata(
    model: ModelState, instead: str = ", or use the partitioner, which needs no marks"
) -> None:
    """Raise if nodes, inputs and outputs of the model cannot have metadata.

    Args:
        model: the model.
        instead: what to do instead of raising the IR version.

    Raises:
        ModelError: its IR version is too old.
    """
    if model.ir_version < METADATA_SINCE:
        raise ModelError(
            f"{model.label} has IR version {model.ir_version}, and marks are metadata of nodes, "
            f"which need {METADATA_SINCE}: raise it with "
            f"`model.set_ir_version({METADATA_SINCE})` or `tiered convert --ir {METADATA_SINCE}`"
            f"{instead}"
        )


class FunctionIds:
    """The ids of the local functions of a model, and the free names for new ones."""

    def __init__(self, model: ModelState) -> None:
        self.taken = {function.id for function in model.functions}
        self._numbers: dict[tuple[str, str], int] = {}

    def take(self, domain: str, name: str) -> str:
        """Return the name, or the name with a number if a function has it; it is taken then."""
        free, number = name, self._numbers.get((domain, name), 0)
        while (domain, free, "") in self.taken:
            number += 1
            free = f"{name}_{number}"
        self._numbers[domain, name] = number
        self.taken.add((domain, free, ""))
        return free


def outlined(
    graph: Graph,
    nodes: Sequence[Node],
    name: str,
    ids: FunctionIds,
    *,
    domain: str = DOMAIN,
    metadata: Mapping[str, str] | None = None,
) -> Node:
    """Outline nodes that are known to be convex, under a name that no function has.

    Args:
        graph: the graph of the nodes.
        nodes: the nodes, producers first.
        name: the name, if it is free.
        ids: the ids of all functions of the model; the new one is added.
        domain: the domain of the function.
        metadata: of the call and of the function.
    """
    free = ids.take(domain, name)
    return graph.outline(nodes, free, domain, is_convex=True, taken=(), metadata=metadata)
