"""The values of `--to`: what each converts, which go together, and the passes that do it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from tiered.numerics.precision.budget import Budget, budget_of
from tiered.pipeline import get_pass
from tiered.support.errors import UsageError, did_you_mean
from tiered.support.numerics import FEW_BITS, Metric, Numerics, Promise

if TYPE_CHECKING:
    from tiered.passes import Pass, PassInfo
    from tiered.runtime.inputs.samples import Source

Order = Literal["auto", "error", "sensitivity"]
Processor = Literal["avx2", "vnni", "any"]
PROCESSORS: Final[tuple[Processor, ...]] = get_args(Processor)

INT32: Final = "int32"
QUANTIZING: Final = ("int8", "int8-dynamic", "fp8", "int8-weights", "int4-weights")
HALVES: Final = ("fp16", "bf16", "mixed")
PRECISIONS: Final = (INT32, *QUANTIZING, *HALVES)
"""All values, in the order in which they are applied: what is quantised first was float."""

_GROUPS: Final = (
    (QUANTIZING, "both quantise, and a quantised model stays as it is"),
    (HALVES, "are two types to compute in"),
)
_PASSES: Final = {
    INT32: "int64_to_int32",
    "int8": "quantize",
    "int8-dynamic": "quantize_dynamic",
    "fp8": "float_to_fp8",
    "int8-weights": "weights_to_int8",
    "int4-weights": "weights_to_int4",
    "fp16": "float_to_half",
    "bf16": "float_to_bfloat16",
    "mixed": "float_to_mixed",
}
PROMISED: Final = frozenset(_PASSES[name] for name in QUANTIZING)
"""The passes that promise what quantisation does, unless they have a budget or own limits."""

_SEARCHED: Final = {"fp16": "fp16", "bf16": "bf16", "mixed": "fp16"}
"""The type of the nodes where those that need float are searched."""


def ordered(to: Iterable[str]) -> tuple[str, ...]:
    """Return values of `--to` in the order in which they are applied, each once.

    Raises:
        UsageError: one is unknown, or two do not go together.
    """
    asked = {part.strip() for text in to for part in text.split(",")}
    for name in sorted(asked):
        if name not in PRECISIONS:
            hint = did_you_mean(name, PRECISIONS)
            raise UsageError(f"--to takes {', '.join(PRECISIONS)}, not {name!r}{hint}")
    for group, why in _GROUPS:
        both = [name for name in group if name in asked]
        if len(both) > 1:
            raise UsageError(f"--to {' and '.join(both)} {why}; use one of them")
    return tuple(name for name in PRECISIONS if name in asked)


@dataclass(frozen=True, kw_only=True)
class PrecisionOptions:
    """How values of `--to` are converted.

    Attributes:
        budget: how far the outputs may move, as cosine>=0.999; "" for any distance.
        order: what returns to float for it first.
        inputs: samples, to measure on.
        keep_ops, keep_nodes: what stays as it is: operators, and globs of names of nodes.
        keep_io: whether inputs and outputs stay float.
        bounds: of int32: the ranges of inputs, as ids=0:30000.
        processor: of int8: where the result runs; None for the processor at hand.
        measures: whether the model is run for fp16, so that what leaves its range stays float.
    """

    budget: str = ""
    order: Order = "auto"
    inputs: Sequence[Source] = ()
    keep_ops: Sequence[str] = ()
    keep_nodes: Sequence[str] = ()
    keep_io: bool = True
    bounds: Sequence[str] = ()
    processor: Processor | None = None
    measures: bool = True


def is_searched(to: str, budget: str) -> bool:
    """Return whether the nodes that need float are searched, which measures the outputs."""
    return to == "mixed" or (to in _SEARCHED and bool(budget))


def is_lossy(to: str) -> bool:
    """Return whether a value reduces accuracy; "" is none."""
    return to not in ("", INT32)


def reads_inputs(to: str, budget: str) -> bool:
    """Return whether a conversion itself runs the model on inputs."""
    is_fitted = is_searched(to, budget) or to in ("int8", "fp8", "int4-weights")
    return is_fitted or (is_lossy(to) and bool(budget))


def takes_order(to: str, budget: str) -> bool:
    """Return whether a conversion ranks what returns to float for a budget."""
    return bool(budget) and (to in HALVES or to == "int8")


def precision_pass(to: str, options: PrecisionOptions) -> Pass:
    """Return the pass of one value of `--to`, with its options and its promise."""
    settings: dict[str, Any] = {
        "skip_op_types": [name for names in options.keep_ops for name in names.split(",")],
        "skip_nodes": list(options.keep_nodes),
    }
    is_mixed = is_searched(to, options.budget)
    if to == INT32:
        settings["bounds"] = list(options.bounds)
    if to in HALVES:
        settings["keep_io_types"] = options.keep_io
    if is_mixed:
        settings["to"] = _SEARCHED[to]
    if takes_order(to, options.budget):
        settings["order"] = options.order
    if to in ("int8", "int8-dynamic") and options.processor is not None:
        settings["processor"] = options.processor
    is_measured = to == "fp16" and not is_mixed and options.measures
    if is_measured:
        settings["measure"] = True
    if is_measured or reads_inputs(to, options.budget):
        settings["inputs"] = options.inputs
    if options.budget and is_lossy(to):
        settings["budget"] = options.budget
    made = get_pass("float_to_mixed" if is_mixed else _PASSES[to], **settings)
    promise = conversion_promise(made.info, options.budget)
    return made if promise == made.info.promise else made.promising(promise)


def conversion_promise(info: PassInfo, budget: str) -> Promise:
    """Return what the pass of a conversion promises: its budget, its own limits, or its class."""
    if info.numerics is Numerics.LOSSY and budget:
        return budget_promise(budget_of(budget))
    if info.limits is None and info.name in PROMISED:
        return FEW_BITS
    return info.promise


def budget_promise(budget: Budget) -> Promise:
    """Return the promise that the outputs are within a budget."""
    ends = (budget.limit, math.inf) if budget.is_least else (-math.inf, budget.limit)
    return Promise(Numerics.LOSSY, metric=Metric(budget.metric, _Measure(budget), *ends))


@dataclass(frozen=True)
class _Measure:
    """The metric of a budget as a function of two arrays; equal for equal budgets."""

    budget: Budget

    def __call__(self, expected: Any, actual: Any, /) -> float:
        found = self.budget.measure({"": expected}, {"": actual})
        return self.budget.limit if found is None else found  # None: there is nothing to compare
