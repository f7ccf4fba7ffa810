"""The roles of the nodes of a small model, by the names of their outputs."""

from collections.abc import Callable, Iterable

from tests.small import parsed
from tiered.analysis.roles.role import Ignored, Narrow, Role
from tiered.graph import DataType, Model, Node

HALF = Narrow.of(DataType.FLOAT16)

Search = Callable[[Model, Narrow, Ignored], dict[Node, Role]]


def roles_in(
    text: str, search: Search, *, narrow: Narrow = HALF, ignored: Iterable[str] = ()
) -> dict[str, str]:
    """Return the name of the role of each node that a search finds.

    Args:
        text: of the model.
        search: the search for one kind of role.
        narrow: the narrower type.
        ignored: the outputs of the nodes whose constants do not count.
    """
    model, left_out = parsed(text), set(ignored)
    found = search(model, narrow, lambda node: node.output.name in left_out)
    return {node.output.name: role.name for node, role in found.items()}
