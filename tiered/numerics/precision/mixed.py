"""Mixed precision: the nodes that stay float are found by ranges, local errors and a budget."""

from __future__ import annotations

from collections.abc import Iterable

from tiered.graph import DataType, Model
from tiered.numerics.calibration.calibrate import SampledModel
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.cast_plan import CastPlan
from tiered.numerics.precision.float_search import FloatSearch
from tiered.numerics.precision.lower import (
    OnFound,
    OnSkip,
    PrecisionRules,
    RuledNarrowing,
    computes_in,
    narrowed,
    note_defaults,
    report,
)
from tiered.numerics.precision.measurement import MOST_MEASURED
from tiered.numerics.precision.narrowed_runs import NarrowedRuns
from tiered.numerics.precision.node_effects import Order
from tiered.numerics.precision.plan_rewrite import Conversion
from tiered.rewriter import Skip
from tiered.runtime.inputs.samples import Source
from tiered.support.errors import RuntimeFailure


def mixed_precision(
    model: Model,
    low: DataType,
    on_found: OnFound,
    on_skip: OnSkip,
    *,
    rules: PrecisionRules,
    budget: str = "",
    order: Order = "auto",
    inputs: Iterable[Source] = (),
    max_error: float = 0.05,
    keep_io_types: bool = True,
    seed: int = 0,
    samples: int = 2,
) -> Conversion:
    """Compute in a narrower type where the outputs allow it, and note what stayed and why.

    A node stays float by the first that holds: the user's rules, the kernels of the target, a
    value that is not proven to fit and was measured too large, a local error; and, from the
    largest local error or effect on, for the budget.

    Args:
        model: the model, edited in place.
        low: the narrower type.
        on_found: called with each finding.
        on_skip: called with each node that stays float, and the reason.
        rules: the user's.
        budget: the limit of the outputs, as `cosine>=0.999`; "" for none.
        order: the nodes that return to float for it first: those with the largest error of their
            own, or with the largest effect of it on the outputs, by gradients; by default the
            latter, if all operators have gradients.
        inputs: files or arrays to measure on; made without any.
        max_error: the largest local error, L2 error / L2 norm.
        keep_io_types: inputs and outputs of the model stay float.
        seed: of generated inputs.
        samples: how many are made.

    Raises:
        UsageError: the budget is not readable, a file belongs to no input, or nodes are ordered by
            sensitivity and an operator has no gradient.
        RuntimeFailure: there is a budget, and onnxruntime does not run the model.
        VerificationError: the budget does not hold with all nodes in float.
    """
    wanted = budget_of(budget) if budget else None
    model.refresh_types()
    # Then a budget would not be measured against floats.
    if wanted is not None and computes_in(model, low):
        on_skip(None, Skip("nodes compute in {} already", low.name.lower()))
        return Conversion(CastPlan((), ()), 0, ())
    for text in rules.findings(model):
        on_found(text)
    if keep_io_types:
        note_defaults(model, on_found)
    search = FloatSearch(model, low, rules, keep_io_types)
    try:
        trials = NarrowedRuns.of(model, inputs, seed=seed, made=samples)
        search.measure(trials, max_error)
    except RuntimeFailure as error:
        if wanted is not None:
            raise
        search.suspect()
        on_found(f"nothing was measured: {str(error).partition(chr(10))[0]}")
        trials = None
    if trials is not None and wanted is not None:
        search.meet(wanted, trials, order)
    if trials is not None:
        for judge, measured in search.measured(trials, wanted):
            on_found(f"measured on {trials} by {judge}: {measured}")
    found = narrowed(model, search.narrowing(), keeps_io=keep_io_types)
    report(model, found, low, on_found, on_skip)
    return found


def in_range(
    model: Model,
    low: DataType,
    rules: PrecisionRules,
    on_found: OnFound,
    *,
    inputs: Iterable[Source] = (),
    keep_io_types: bool = True,
    seed: int = 0,
    samples: int = 2,
    max_bytes: int = MOST_MEASURED,
) -> RuledNarrowing:
    """Return a narrowing in which what leaves the range of a type on inputs stays float.

    Args:
        model: it is not edited; its types are known.
        low: the narrower type.
        rules: the user's.
        on_found: called with the reason if nothing was measured.
        inputs: files or arrays to measure on; made without any.
        keep_io_types: inputs and outputs of the model stay float.
        seed: of generated inputs.
        samples: how many are made.
        max_bytes: a model with more bytes of weights is not run.

    Raises:
        ModelError: a file of inputs cannot be read.
        UsageError: a file of inputs belongs to no input.
    """
    search = FloatSearch(model, low, rules, keep_io_types)
    if not search.computing():
        return search.narrowing()
    if model.nbytes > max_bytes:
        on_found(f"ranges were not measured: more than {max_bytes:,} bytes of weights")
        return search.narrowing()
    try:
        with SampledModel.of(model) as running:
            feeds = running.samples(inputs, seed=seed, count=samples)
        search.keep_beyond(feeds, margin=1)
    except RuntimeFailure as error:
        on_found(f"ranges were not measured: {str(error).partition(chr(10))[0]}")
    return search.narrowing()
