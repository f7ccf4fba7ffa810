"""int64 to int32: where the schemas take int32, and ranges prove that no number is beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.graph import DataType, Model, Node, Value
from tiered.graph.intervals.interval import Interval
from tiered.graph.intervals.range_analysis import LARGEST_DIM, Ranges, ranges
from tiered.graph.queries.formals import formal_of, output_formal_of
from tiered.numerics.precision.lower import computes_in
from tiered.numerics.precision.narrowing import Narrowing, unmatched, why_skipped
from tiered.numerics.precision.nothing import nothing_converted
from tiered.numerics.precision.plan_rewrite import Conversion, convert_precision
from tiered.rewriter import Skip
from tiered.support.amounts import counted
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.targets import Backend

Array = np.ndarray[Any, Any]

_LOW: Final = -(1 << 31)
_HIGH: Final = (1 << 31) - 1

_ANY: Final = frozenset(DataType)

_INNER_NUMBERS: Final = frozenset(
    {"Gemm", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "Resize",
     "Shrink", "Upsample"}
)  # fmt: skip
"""Operators that compute larger numbers than they return, or round in a way of their own."""

_CLAMPED: Final = (1, 2, 4)
"""The operands of Slice that are limited by the axis: starts, ends and steps."""


class IntegerNarrowing(Narrowing):
    """From int64 to int32: no number changes.

    Args:
        proven: the ranges of all values.
        keep: returns why a node stays as it is; empty if it need not.
        backend: the target; None for what ONNX allows.
    """

    wide = DataType.INT64
    low = DataType.INT32

    def __init__(
        self, proven: Ranges, keep: Callable[[Node], str], backend: Backend | None = None
    ) -> None:
        self._proven = proven
        self._keep = keep
        self._backend = backend

    def keep(self, node: Node) -> str:
        """Return why the operands of a node stay as they are."""
        if not node.domain and node.op_type in _INNER_NUMBERS:
            return "inner numbers may be larger than int32"
        if node.is_op("EyeLike") and not node.has_attr("dtype"):
            return "the operand decides the dtype"
        if node.is_op("Range") and not all(
            self._proven[value].is_within(_LOW // 2, _HIGH // 2) for value in node.reads
        ):
            return "a step count may be larger than int32"
        if self._backend is not None and not self._has_kernels(self._backend, node):
            return f"{self._backend} has no {node.op_type} of int32"
        return self._keep(node)

    def _has_kernels(self, backend: Backend, node: Node) -> bool:
        """Return whether a target takes int32 in any of the type parameters of a node."""
        rules = backend.rules(node.op_type, node.domain)
        rules = tuple(rule for rule in rules if rule.versions.holds(node.version))
        if not rules:
            return True  # it does not take the node in int64 either
        dtypes, narrowed = dict[str, int](), dict[str, None]()
        for parameter, allowed, value in _parameters(node):
            if value.dtype is not None:
                dtypes[parameter] = value.dtype
                if value.dtype == self.wide and self.low in allowed:
                    narrowed[parameter] = None
        return all(
            any(
                all(
                    (self.low if name in chosen else dtype) in rule.types.get(name, _ANY)
                    for name, dtype in dtypes.items()
                )
                for rule in rules
            )
            for count in range(1, len(narrowed) + 1)
            for chosen in combinations(narrowed, count)
        )

    def refuse(self, value: Value, node: Node | None = None, place: int = 0) -> str:
        """Return why a value is not proven to be in the range of int32."""
        # A Slice limits its operands to the axis, INT64_MAX too.
        is_limited = node is not None and node.is_op("Slice") and place in _CLAMPED
        if is_limited and value.tensor is not None:
            return "" if not value.tensor.is_sparse else "a sparse constant"
        return "" if self._proven[value].is_within(_LOW, _HIGH) else "not proven to fit int32"

    def converted(self, array: Array) -> tuple[Array, bool]:
        """Return the numbers in int32; larger ones are limits of a Slice."""
        return np.clip(array, _LOW, _HIGH).astype(np.int32), False


def _parameters(node: Node) -> Iterator[tuple[str, frozenset[int], Value]]:
    """Yield the type parameter of each operand and output, its dtypes, and the value."""
    schema = node.schema
    for values, formal in ((node.inputs, formal_of), (node.outputs, output_formal_of)):
        for place, value in enumerate(values):
            if value is not None and schema is not None:
                found = formal(schema, place)
                yield found.parameter, found.dtypes, value


def narrow_integers(
    model: Model,
    on_found: Callable[[str], None],
    on_skip: Callable[[Node | None, Skip], None],
    *,
    bounds: tuple[str, ...] = (),
    max_dim: int = LARGEST_DIM,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    backend: Backend | None = None,
) -> Conversion:
    """Compute in int32 instead of int64 where no output changes.

    Args:
        model: the model, edited in place.
        on_found: called with each finding.
        on_skip: called with each node that stays as it is, and the reason.
        bounds: the ranges of inputs, as `name=low:high`.
        max_dim: the largest size of a dim that is not a number.
        skip_op_types: operators that stay as they are.
        skip_nodes: globs of the names of nodes that stay as they are.
        backend: the target; operators that it does not have in int32 stay.
    """

    def keep(node: Node) -> str:
        return why_skipped(node, skip_op_types, skip_nodes)

    model.refresh_types()
    declared = _declared(model, bounds)
    for text in unmatched(model, skip_op_types, skip_nodes):
        on_found(text)
    # A Cast would make another index of one that is an error.
    analysis = ranges.without_trust().with_inputs(declared).with_dims(0, min(max_dim, LARGEST_DIM))
    narrowing = IntegerNarrowing(model.analysis(analysis), keep, backend)
    found = convert_precision(model, narrowing)
    for node, reason in found.plan.kept_nodes:
        on_skip(node, Skip(reason))
    if found.plan.low:
        nodes = {variable.node for variable in found.plan.low if variable.node is not None}
        compute = counted(len(nodes), "node computes", "nodes compute")
        on_found(f"{compute} in int32; Casts added: {found.casts}")
    elif found.plan.kept_nodes and not computes_in(model, DataType.INT32):
        on_skip(None, nothing_converted("no node computes in int32", found.plan.kept_nodes))
    return found


def _declared(model: Model, bounds: tuple[str, ...]) -> Mapping[str, Interval]:
    """Return the ranges of inputs that the user declares.

    Raises:
        UsageError: no such input, no `name=low:high`, or no number is in a range.
    """
    names = {value.name for value in model.main.inputs}
    found = {}
    for bound in bounds:
        name, _, ends = bound.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            found[name] = Interval(int(low), int(high))
        except ValueError as error:
            raise UsageError(f"bounds: {bound!r} is not name=low:high, as ids=0:30521") from error
        if name not in names:
            raise UsageError(f"bounds: the model has no input {name!r}, as {bound!r} says")
        if found[name].low > found[name].high:
            raise UsageError(f"bounds: no number is in the range of {bound!r}")
    return found
