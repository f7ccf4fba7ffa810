"""The search: a refused node becomes nodes that the target takes, all of them, or stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tiered.analysis.legalization.simplify import simplify
from tiered.analysis.legalization.sources import Source, check_maps, sources_of
from tiered.graph import Edit, Mark, Model, Node
from tiered.rewriter import Skip
from tiered.support.numerics import Numerics, is_within
from tiered.targets.coverage import checked_graphs, operator_name
from tiered.targets.standard import check_operator

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.targets import Backend

OnSkip = Callable[[Node, Skip], None]

Path = frozenset[tuple[str, str]]
"""The (source, operator) of the legalizations around one."""


def legalize_nodes(
    model: Model,
    backend: Backend,
    on_skip: OnSkip,
    *,
    numerics: Numerics = Numerics.EXACT,
    maps: tuple[str, ...] = ("default",),
    leave: Sequence[str] = (),
) -> None:
    """Replace the nodes that a target refuses by nodes that it takes.

    One node after the other: the first source whose nodes the target takes all, replaced in turn
    where needed, stays; if there is none, the node stays as it is.

    Args:
        model: the model, edited in place.
        backend: the target.
        on_skip: called with each node that stays, and the reason.
        numerics: the loosest class of a legalization.
        maps: the names of the maps of registered legalizations.
        leave: operators that stay as they are: Softmax, com.microsoft::Gelu.

    Raises:
        UsageError: no legalization is registered in one of the maps, or there is no such operator.
    """
    check_maps(maps)
    for name in leave:
        check_operator(name, backend.operators)
    search = _Search(backend, numerics, maps)
    # Bodies first: a branch may be taken apart once no operator of it nests any more.
    for graph in reversed(tuple(checked_graphs(model, backend))):
        for node in tuple(graph.topological_order()):
            if not node.is_live or node.is_op("Constant"):
                continue
            refused = backend.refusals(node)
            if not refused:
                continue
            if operator_name(node) in leave:
                on_skip(node, Skip("{}; it is to stay as it is", refused[0]))
                continue
            law = f"{operator_name(node)}  =>  operators that {backend.name} takes"
            with graph.rewrite(law, node):
                reason = search.legalize(node, frozenset())
            if reason is not None:
                on_skip(node, Skip("{}; {}", refused[0], reason))


class _Search:
    def __init__(self, backend: Backend, numerics: Numerics, maps: tuple[str, ...]) -> None:
        self.backend = backend
        self.numerics = numerics
        self.maps = maps

    def legalize(self, node: Node, path: Path) -> str | None:
        """Replace a refused node; return why no source has nodes that the target takes."""
        model, reasons = node.owner.model, list[str]()
        for source in sources_of(node, self.backend, self.maps):
            step = source.name, operator_name(node)
            if step in path:
                continue
            if not is_within(source.numerics, self.numerics):
                reasons.append(f"{source.name} is {source.numerics}, not {self.numerics}")
                continue
            mark = model.mark()
            reason = self._try(source, node, path | {step})
            if reason is None:
                return None
            model.undo_to(mark)
            reasons.append(f"{source.name}: {reason}")
        return "; ".join(reasons) or "there is no legalization"

    def _try(self, source: Source, node: Node, path: Path) -> str | None:
        """Replace a node by a source; return the reason if a new node cannot be legal."""
        model = node.owner.model
        mark = model.mark()
        declined = source.apply(node)
        if declined is not None:
            return str(declined)
        simplify(_added(model, mark))
        left: list[tuple[Node, str]] = []
        for added in _added(model, mark):
            if added.is_live and (refused := self.backend.refusals(added)):
                reason = f"{operator_name(added)} in it is refused: {refused[0]}"
                if self.legalize(added, path) is not None:
                    left.append((added, reason))
        # A consumer's replacement may read past a node: Div(x, Sqrt(v)) past the Sqrt.
        return next((reason for added, reason in left if added.is_live), None)


def _added(model: ModelState, mark: Mark) -> list[Node]:
    """Return the nodes of graphs, not of functions, that were added since a mark, in order."""
    entries = model.journal.since(mark)
    nodes = [entry[1] for entry in entries if entry[0] is Edit.ADD_NODE]
    is_call_body = {entry[1] for entry in entries if entry[0] is Edit.ADD_FUNCTION}
    return [node for node in nodes if node.is_live and node.owner.root not in is_call_body]
