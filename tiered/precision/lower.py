"""Lower the precision of a model: the user's and the target's rules, and the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tiered.graph import DataType, Model, Node
from tiered.precision.convert import Conversion, convert_precision
from tiered.precision.narrowing import FloatNarrowing, why_skipped
from tiered.rewriter import Skip

if TYPE_CHECKING:
    from tiered.backends import Backend

OnFound = Callable[[str], None]
OnSkip = Callable[["Node | None", Skip], None]


def lower_precision(
    model: Model,
    low: DataType,
    on_found: OnFound,
    on_skip: OnSkip,
    *,
    keep_io_types: bool = True,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    backend: Backend | None = None,
) -> Conversion:
    """Compute in a narrower type than float, and note what was converted and what stayed.

    Args:
        model: the model, edited in place.
        low: the narrower type.
        on_found: called with each finding.
        on_skip: called with each node that stays float, and the reason.
        keep_io_types: inputs and outputs of the model stay float.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
        backend: the target; nodes that it takes in float only stay float.
    """

    def keep(node: Node) -> str:
        if reason := why_skipped(node, skip_op_types, skip_nodes):
            return reason
        if backend is None or backend.supports(node.op_type, node.domain, low):
            return ""
        takes_float = backend.supports(node.op_type, node.domain, DataType.FLOAT)
        return f"{backend} takes {node.op_type} in float only" if takes_float else ""

    found = convert_precision(model, FloatNarrowing(low, keep), keeps_io=keep_io_types)
    name = low.name.lower()
    for node, reason in found.plan.kept_nodes:
        on_skip(node, Skip(reason))
    if found.plan.low:
        nodes = {variable.node for variable in found.plan.low if variable.node is not None}
        on_found(f"{len(nodes)} nodes compute in {name}; Casts added: {found.casts}")
    if found.clamped:
        example = next(iter(found.clamped))
        count = len(found.clamped)
        on_found(f"constants with numbers beyond {name}, which are clamped: {count}, as {example}")
    return found
