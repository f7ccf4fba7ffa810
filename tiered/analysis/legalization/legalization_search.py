"""The search: a refused node becomes nodes that the target takes, all of them, or stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tiered.analysis.legalization.legalization_sources import Source, check_maps, sources_of
from tiered.graph import DataType, Edit, Mark, Model, Node, Tensor, is_deterministic
from tiered.rewriter import Skip
from tiered.runtime import evaluate
from tiered.support.numerics import Numerics, is_within
from tiered.targets.coverage import checked_graphs
from tiered.targets.shared_rules import check_operator

if TYPE_CHECKING:
    from tiered.graph import Value
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

    For each node the sources are tried in order. The target must take the nodes of a source,
    or what replaces them in turn; the first such source is used. Without one the node stays.

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
    search = _LegalizationSearch(backend, numerics, maps)
    # Bodies first: a branch may be taken apart once no operator of it nests any more.
    for graph in reversed(tuple(checked_graphs(model, backend))):
        for node in tuple(graph.topological_order()):
            if not node.is_live:
                continue
            refused = backend.refusals(node)
            if not refused:
                continue
            if node.operator in leave:
                on_skip(node, Skip("{}; it is to stay as it is", refused[0]))
                continue
            law = f"{node.operator}  =>  operators that {backend.name} takes"
            with graph.rewrite(law, node):
                reason = search.legalize(node, frozenset())
            if reason is not None:
                on_skip(node, Skip("{}; {}", refused[0], reason))


class _LegalizationSearch:
    def __init__(self, backend: Backend, numerics: Numerics, maps: tuple[str, ...]) -> None:
        self.backend = backend
        self.numerics = numerics
        self.maps = maps

    def legalize(self, node: Node, path: Path) -> str | None:
        """Replace a refused node; return why no source has nodes that the target takes."""
        model, reasons = node.owner.model, list[str]()
        for source in sources_of(node, self.backend, self.maps):
            step = source.name, node.operator
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
                reason = f"{added.operator} in it is refused: {refused[0]}"
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


# --- An expanded body without its general parts: conversions that do nothing, known values --------

_MOST_ELEMENTS: Final = 1024
"""Larger results stay computed, so that no body makes a model grow."""


def simplify(nodes: Sequence[Node]) -> None:
    """Fold constants and shapes, remove copies, and turn constants into initializers.

    ONNX's bodies hold for all dtypes and shapes; targets take a Reshape only with a constant shape.

    Args:
        nodes: the nodes of one expanded body, producers first.
    """
    for node in nodes:
        tensor = node.output.tensor if node.is_op("Constant") else None
        # onnx's inference knows no initializer that is the output of a body.
        if tensor is not None and not node.output.is_graph_output:
            node.owner.become_constant(node.output, tensor)
    for node in nodes:
        if _copies(node) and not node.output.is_graph_output:
            node.owner.replace(node, [node.given(0)])
    for node in reversed(nodes):  # a Concat before the Split that it reads
        if node.is_live:
            _drop_empty_parts(node)
    for node in nodes:
        for value in node.used_outputs.values() if node.is_live else ():
            _fold_elements(node, value)
    constant: dict[Value, None] = {}
    for node in nodes:
        if node.is_live and _is_constant(node, constant):
            constant.update((value, None) for value in node.outputs if value is not None)
    wanted = [value for value in constant if _is_read_outside(value, constant)]
    for value, array in evaluate(wanted, lambda value, error: None).items():
        if array.size <= _MOST_ELEMENTS:
            value.owner.become_constant(value, Tensor.of(array))


def _copies(node: Node) -> bool:
    """Return whether the output of a node is its operand, bit for bit."""
    if node.is_op("Cast") or node.is_op("CastLike"):
        dtype = node.given(0).dtype
        return dtype is not None and dtype == node.output.dtype
    return node.is_op("Identity")


def _drop_empty_parts(node: Node) -> None:
    """Drop empty operands of a Concat, and a Split if its only used result is all of its input."""
    if node.is_op("Concat") and not node.output.is_graph_output:
        axis = node.attr("axis")
        filled = [value for value in node.reads if value.dim(axis) != 0]
        if len(filled) == 1:
            node.owner.replace(node, filled)
        elif 1 < len(filled) < len(node.inputs):
            node.owner.set_inputs(node, filled)
    elif node.is_op("Split"):
        _read_past(node)


def _read_past(node: Node) -> None:
    x, axis = node.given(0), node.attr("axis")
    used = list(node.used_outputs.values())
    if len(used) != 1 or used[0].is_graph_output:
        return
    size = x.dim(axis)
    if isinstance(size, int) and used[0].dim(axis) == size:
        node.owner.replace_uses(used[0], x)


def _fold_elements(node: Node, value: Value) -> None:
    elements = value.elements
    if value.is_graph_output or elements is None or value.dtype is None:
        return
    if all(isinstance(element, int) for element in elements.ravel().tolist()):
        array = elements.astype(DataType(value.dtype).numpy)
        node.owner.become_constant(value, Tensor.of(array))


def _is_constant(node: Node, constant: dict[Value, None]) -> bool:
    """Return whether a node computes from constants alone."""
    if node.domain or node.bodies or not is_deterministic(node):
        return False
    return bool(node.reads) and all(
        value in constant or (value.tensor is not None and value.tensor.size <= _MOST_ELEMENTS)
        for value in node.reads
    )


def _is_read_outside(value: Value, constant: dict[Value, None]) -> bool:
    """Return whether a node that is not constant reads a value, which is no output."""
    return not value.is_graph_output and any(
        output not in constant for reader in value.readers for output in reader.outputs
    )
