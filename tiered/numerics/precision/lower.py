"""Lower the precision of a model: the user's and the target's rules, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.analysis.roles.model_roles import roles_of
from tiered.analysis.roles.role import Roles, graphs_of
from tiered.graph import DataType, InterfaceMap, Model, Node, Value
from tiered.numerics.precision.narrowing import (
    FloatNarrowing,
    is_chosen,
    is_in_unit,
    unmatched,
    why_no_weight,
    why_skipped,
)
from tiered.numerics.precision.nothing import nothing_converted
from tiered.numerics.precision.plan_rewrite import Conversion, convert_precision
from tiered.rewriter import Skip, Unable
from tiered.support.amounts import counted
from tiered.targets import noting_lost_kernels

if TYPE_CHECKING:
    from tiered.targets import Backend

Array = np.ndarray[Any, Any]
OnFound = Callable[[str], None]
OnSkip = Callable[["Node | None", Skip], None]


@dataclass(frozen=True, kw_only=True)
class PrecisionRules:
    """What the user says of nodes, by operator and by globs of names.

    Attributes:
        skip_op_types, skip_nodes: these stay float.
        force_op_types, force_nodes: these do not, if their schemas allow it: whatever the target
            takes, a constant becomes or is measured.
        backend: the target; nodes that it takes in float only stay float.
    """

    skip_op_types: tuple[str, ...] = ()
    skip_nodes: tuple[str, ...] = ()
    force_op_types: tuple[str, ...] = ()
    force_nodes: tuple[str, ...] = ()
    backend: Backend | None = None

    def findings(self, model: Model) -> Iterator[str]:
        """Return which operators and names fit no node of a model, in words."""
        op_types = (*self.skip_op_types, *self.force_op_types)
        return unmatched(model, op_types, (*self.skip_nodes, *self.force_nodes))

    def forces(self, node: Node | None) -> bool:
        """Return whether a node has to be in the narrower type."""
        return node is not None and is_chosen(node, self.force_op_types, self.force_nodes)


class RuledNarrowing(FloatNarrowing):
    """From float to a narrower type, but for nodes and values with a reason.

    Args:
        low: the narrower type.
        rules: the user's, which come first.
        roles: the nodes that stay float for what they compute.
        kept: other nodes that stay float, and why.
        beyond: the values that do not fit, and why.
    """

    def __init__(
        self,
        low: DataType,
        rules: PrecisionRules,
        roles: Roles,
        kept: Mapping[Node, str] = MappingProxyType({}),
        beyond: Mapping[Value, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(low)
        self._rules = rules
        self._roles = roles
        self._kept = kept
        self._beyond = beyond

    def keep(self, node: Node) -> str:
        """Return why a node stays float."""
        rules = self._rules
        skipped = why_skipped(node, rules.skip_op_types, rules.skip_nodes)
        if skipped or (rules.forces(node) and not is_in_unit(node)):
            return skipped
        reason = super().keep(node) or str(self._roles.get(node, ""))
        reason = reason or why_unsupported(node, self.low, rules.backend)
        return reason or self._kept.get(node, "")

    def refuse(self, value: Value, node: Node | None = None, place: int = 0) -> str:
        """Return why a value stays float."""
        if value not in self._beyond or self._rules.forces(node or value.producer):
            return ""
        return self._beyond[value]


def lower_precision(
    model: Model,
    low: DataType,
    on_found: OnFound,
    on_skip: OnSkip,
    *,
    keep_io_types: bool = True,
    rules: PrecisionRules,
    measured: Callable[[], RuledNarrowing] | None = None,
) -> Conversion:
    """Compute in a narrower type than float, and note what was converted and what stayed.

    Args:
        model: the model, edited in place.
        low: the narrower type.
        on_found: called with each finding.
        on_skip: called with each node that stays float, and the reason.
        keep_io_types: inputs and outputs of the model stay float.
        rules: the user's.
        measured: returns the narrowing, from runs of the model; None for that of roles alone.
    """
    for text in rules.findings(model):
        on_found(text)
    model.refresh_types()
    if keep_io_types:
        note_defaults(model, on_found)
    if measured is not None:
        narrowing = measured()
    else:
        narrowing = RuledNarrowing(low, rules, roles_of(model, low, rules.forces))
    # onnxruntime runs next to nothing in bfloat16; a named target is checked as a whole.
    is_noted = low is DataType.FLOAT16 and rules.backend is None
    with noting_lost_kernels(model) if is_noted else nullcontext():
        found = narrowed(model, narrowing, keeps_io=keep_io_types)
    report(model, found, low, on_found, on_skip)
    return found


def note_defaults(model: Model, on_found: OnFound) -> None:
    """Note that inputs with defaults are no constants, which need a Cast each."""
    for value in model.main.inputs:
        if value.default is not None and value.dtype == DataType.FLOAT:
            on_found(why_no_weight(value).replace("the weight is", f"{value.name!r} is"))
            return


def narrowed(model: Model, narrowing: FloatNarrowing, *, keeps_io: bool) -> Conversion:
    """Convert a model, and note which inputs hold what was fed in float before."""
    wide = [value for value in model.main.inputs if value.dtype == narrowing.wide]
    found = convert_precision(model, narrowing, keeps_io=keeps_io)
    feeds = {value.name: (value.name, _in_float) for value in wide if value.dtype == narrowing.low}
    if feeds:
        model.note_interface(InterfaceMap(feeds=feeds))
    return found


def _in_float(array: Array) -> Array:
    return array.astype(np.float32)


def why_unsupported(node: Node, low: DataType, backend: Backend | None) -> str:
    """Return why a target does not take a node in a narrower type; empty if it does."""
    if backend is None or backend.supports(node.op_type, node.domain, low):
        return ""
    takes_float = backend.supports(node.op_type, node.domain, DataType.FLOAT)
    return f"{backend} takes {node.op_type} in float only" if takes_float else ""


def _weights_in(model: Model, low: DataType) -> str:
    """Return how many bytes of weights are in a narrower type, in words."""
    counts = _weights_by_dtype(model)
    half, wide = (counts[each] * each.bits // 8 for each in (low, DataType.FLOAT))
    share = 100 * share_of_weights(model, low)
    in_half = f"{half:,} bytes in {low.name.lower()} ({share:.1f} % of the numbers)"
    return f"weights: {in_half}, {wide:,} in float"


def share_of_weights(model: Model, dtype: DataType) -> float:
    """Return the share of the elements of float weights that have a dtype; 0 if there are none."""
    counts = _weights_by_dtype(model)
    return counts[dtype] / (sum(counts.values()) or 1)


def _weights_by_dtype(model: Model) -> Counter[DataType]:
    """Return how many elements of constants that nodes read there are, by the dtype of floats."""
    counts = Counter[DataType]()
    for graph in graphs_of(model):
        values = {value: None for node in graph.nodes for value in node.inputs if value is not None}
        for value in (each for each in values if each.owner is graph):
            tensor = value.tensor
            if tensor is not None and DataType(tensor.dtype).is_float:
                counts[DataType(tensor.dtype)] += tensor.size
    return counts


def computes_in(model: Model, low: DataType) -> bool:
    """Return whether a node computes in a type already."""
    return any(
        value is not None and value.dtype == low
        for graph in graphs_of(model)
        for node in graph.nodes
        if not node.is_op("Cast") and not node.is_op("Constant")
        for value in node.outputs
    )


def _other_floats(model: Model) -> str:
    """Return the dtypes of floats that nodes compute in, other than float, in words."""
    outputs = (
        value for graph in graphs_of(model) for node in graph.nodes for value in node.outputs
    )
    dtypes = (DataType(value.dtype) for value in outputs if value is not None and value.dtype)
    names = {dtype.name.lower() for dtype in dtypes if dtype.is_float and dtype != DataType.FLOAT}
    return " and ".join(sorted(names)) or "integers"


def report(
    model: Model, found: Conversion, low: DataType, on_found: OnFound, on_skip: OnSkip
) -> None:
    """Report what a conversion did, and each node that stayed float, or that there was none."""
    name, kept = low.name.lower(), found.plan.kept_nodes
    if not found.plan.low and not kept:
        others = _other_floats(model)
        kind = Skip if others == name else Unable
        on_skip(None, kind("no node computes in float, but in {}", others))
    for node, reason in kept:
        on_skip(node, Skip(reason))
    if kept and not found.plan.low and not computes_in(model, low):
        on_skip(None, nothing_converted(f"no node computes in {name}", kept))
    if found.plan.low:
        nodes = {variable.node for variable in found.plan.low if variable.node is not None}
        compute = counted(len(nodes), "node computes", "nodes compute")
        on_found(f"{compute} in {name}; Casts added: {found.casts}")
        if any(_weights_by_dtype(model).values()):
            on_found(_weights_in(model, low))
    if found.clamped:
        example = next(iter(found.clamped))
        count = len(found.clamped)
        on_found(f"constants with numbers beyond {name}, which are clamped: {count}, as {example}")
