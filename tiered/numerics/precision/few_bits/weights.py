"""Weights in few bits: a stored constant, and a DequantizeLinear that its readers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

import numpy as np

from tiered.analysis.roles.masks import MASKED, mask_limits
from tiered.analysis.roles.model_roles import few_bit_roles
from tiered.graph import DataType, Graph, Model, Node, Tensor, Value
from tiered.numerics.precision.few_bits.formats import WeightFormat
from tiered.numerics.precision.few_bits.readers import (
    WeightReader,
    nodes_of,
    readers_in,
    refusal_of,
)
from tiered.numerics.precision.few_bits.returning import OutputBudget, convert_within
from tiered.numerics.precision.few_bits.sampled_operands import Operands, Sampling
from tiered.numerics.precision.few_bits.sensitive import (
    Chooser,
    chooser_of,
    last_products,
    undiluted_kernels,
)
from tiered.numerics.precision.few_bits.stored import Encoded, Stored, encoded
from tiered.numerics.precision.lower import OnFound, OnSkip
from tiered.numerics.precision.narrowing import unmatched, why_skipped
from tiered.rewriter import Skip, Unable
from tiered.support.amounts import counted

Array = np.ndarray[Any, Any]
Keep = Callable[[Node], str]
"""Returns why a node reads its weight as it is; empty if it may be stored otherwise."""

_IN_MEMORY: Final = 1 << 20
"""Scales of more bytes go to disk: with blocks they grow with the weights."""

_UNDILUTED: Final = "rounded to 8 bits, it would move the outputs most"


def quantize_weights(
    model: Model,
    form: WeightFormat,
    on_found: OnFound,
    on_skip: OnSkip,
    *,
    min_elements: int = 1024,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    budget: OutputBudget | None = None,
    sampling: Sampling | None = None,
    sensitive: WeightFormat | None = None,
) -> None:
    """Store the constant weights of Conv, Gather, Gemm and MatMul in few bits.

    Args:
        model: the model, edited in place.
        form: how they are stored.
        on_found: called with each finding.
        on_skip: called with each reader of a weight that stays, and the reason.
        min_elements: smaller weights stay.
        skip_op_types: operators that keep their weights.
        skip_nodes: globs of the names of nodes that keep their weights.
        budget: weights return to float until it holds; None for no limit.
        sampling: what operands are measured on, if the format fits codes to them; None to round
            to nearest.
        sensitive: how tables, kernels and the weights of the last products are stored; None for the
            same format. Few kernels that would decide the error stay float then.

    Raises:
        UsageError, ModelError, RuntimeFailure, VerificationError: as of `convert_within` and
            `Operands`.
    """
    for text in unmatched(model, skip_op_types, skip_nodes):
        on_found(text)
    model.refresh_types()
    limits, roles = budget or OutputBudget(), few_bit_roles(model)
    if sampling is None:
        limits.check_read()
    last = last_products(model, min_elements)
    whole = set[Node]()
    known = Encoded() if limits.limit else None

    def convert(kept: Mapping[Node, str], on_found: OnFound, on_skip: OnSkip) -> list[Node]:
        def keep(node: Node) -> str:
            role = roles.get(node)
            own = kept.get(node, "") or why_skipped(node, skip_op_types, skip_nodes)
            return own or (str(role) if role else "") or (_UNDILUTED if node in whole else "")

        found, seen = list[Node](), set[tuple[Node | None, str]]()

        def skip_once(node: Node | None, reason: Skip) -> None:
            if (node, str(reason)) not in seen:
                seen.add((node, str(reason)))
                on_skip(node, reason)

        # Without an operator of the format nothing is stored, in the other one neither.
        other = sensitive if model.opset() >= form.opset else None
        for each in filter(None, (other, form)):
            chooses = chooser_of(is_sensitive=each is other, last=last) if other else None
            read = operands if each.fit else None
            found += store_weights(
                model, each, on_found, skip_once, keep, min_elements, known, read, chooses
            )
        return found

    with ExitStack() as stack:
        operands = None
        if sampling is not None and form.fit is not None:
            operands = stack.enter_context(Operands(model, sampling))
        if sensitive is not None and operands is not None:
            whole |= undiluted_kernels(model, min_elements, operands.samples)
        low = form.dtype
        convert_within(model, convert, limits, on_found, on_skip, what="weight", low=low)
        if operands is not None:
            operands.check_inputs()


def store_weights(
    model: Model,
    form: WeightFormat,
    on_found: OnFound,
    on_skip: OnSkip,
    keep: Keep,
    min_elements: int,
    known: Encoded | None = None,
    operands: Operands | None = None,
    chooses: Chooser | None = None,
) -> list[Node]:
    """Store weights in few bits, and return the nodes that read them.

    Args:
        model, form, on_found, on_skip, min_elements: as of `quantize_weights`.
        keep: says which nodes read their weights as they are.
        known: the codes of weights that were stored before; more are added.
        operands: what weights are multiplied by, to fit codes to; None to round to nearest.
        chooses: returns whether the weight of some readers is stored in this format; None for all.
    """
    readers, unfit = readers_in(model)
    if chooses is not None and readers:
        readers = {value: uses for value, uses in readers.items() if chooses(nodes_of(uses))}
        if not readers:
            return []
    for node, reason in unfit.items():
        on_skip(node, Skip(reason))
    if not readers:
        if unfit:
            first = next(iter(unfit.values()))
            on_skip(None, Unable("no weight is stored in few bits: {}", first))
        else:
            on_skip(None, Unable("no constant weight of Conv, Gather, Gemm or MatMul"))
        return []
    if model.opset() < form.opset:
        text = "{} needs opset {}, the model has {}"
        on_skip(None, Unable(text, form.dtype.name.lower(), form.opset, model.opset()))
        return []
    chosen, masks = dict[Value, list[WeightReader]](), mask_limits(model)
    for value, uses in readers.items():
        is_mask = value in masks
        refused = str(MASKED) if is_mask else refusal_of(value, uses, form, min_elements)
        if reason := next(filter(None, map(keep, nodes_of(uses))), refused):
            on_skip(uses[0].node, Skip(reason))
        else:
            chosen[value] = uses
    if operands is not None and chosen:
        operands.plan({value: _multiplied(value, uses) for value, uses in chosen.items()})
    tally, edited = _Tally(), list[Node]()
    for value, uses in chosen.items():
        stored = _stored(value, uses[0], form, known, operands)
        if stored is None:
            on_skip(uses[0].node, Skip("the weight has NaN or Inf"))
            continue
        tally.add(value, stored)
        _replace(value, uses, stored, form)
        edited += [use.node for use in uses]
        # Large codes are on disk now, and those of the next weight need the memory.
        del stored
    for text in tally.findings(form.dtype, operands):
        on_found(text)
    return list(dict.fromkeys(edited))


def _multiplied(value: Value, uses: list[WeightReader]) -> list[Node]:
    """Return the nodes that multiply by a matrix, if all sum over its same axis."""
    is_fit = value.rank == 2 and len({use.channel for use in uses}) == 1
    return [use.node for use in uses] if is_fit else []


class _Tally:
    """Weights that are stored, in numbers."""

    def __init__(self) -> None:
        self._count = self._fitted = self._before = self._after = 0
        self._worst: tuple[float, str] = (math.inf, "")

    def add(self, value: Value, stored: Stored) -> None:
        """Count a weight."""
        assert value.tensor is not None
        self._count += 1
        self._fitted += stored.is_fitted
        self._before += value.tensor.nbytes
        self._after += stored.nbytes
        self._worst = min(self._worst, (stored.quality, value.name))

    def findings(self, low: DataType, operands: Operands | None) -> Iterator[str]:
        """Yield what is worth knowing, in words."""
        if not self._count:
            return
        name, (quality, worst) = low.name.lower(), self._worst
        yield f"{counted(self._count, 'weight')} in {name}: {self._before} bytes are {self._after}"
        if math.isfinite(quality):
            yield f"the least signal to noise of a weight: {quality:.1f} dB, of {worst}"
        if operands is not None and operands.reason:
            yield f"rounded to nearest: {operands.reason}"
        elif operands is not None:
            yield f"{self._fitted} of {self._count} are rounded for {operands}, others to nearest"


def _stored(
    value: Value,
    reader: WeightReader,
    form: WeightFormat,
    known: Encoded | None,
    operands: Operands | None,
) -> Stored | None:
    """Return a weight in few bits, from what is known if it is there."""
    if known is not None and value in known:
        return known[value]
    assert value.tensor is not None
    operand = None if operands is None else operands.of(value)
    stored = encoded(value.tensor.numpy(), reader, form, operand)
    if known is not None:
        known[value] = stored
    return stored


def _replace(value: Value, uses: list[WeightReader], stored: Stored, form: WeightFormat) -> None:
    """Let the readers of a weight read it from its codes."""
    graph: Graph = value.owner
    name = value.name
    codes = graph.constant(Tensor.of(stored.codes), f"{name}_{form.dtype.name.lower()}")
    scales = graph.constant(Tensor.of(stored.scales, in_memory=_IN_MEMORY), f"{name}_scale")
    operands = [codes, scales]
    if stored.zeros is not None:
        operands.append(graph.constant(Tensor.of(stored.zeros), f"{name}_zero_point"))
    made = graph.op.DequantizeLinear(*operands, axis=stored.axis, block_size=form.block)
    if stored.shape is not None:
        shape = graph.constant(np.array(stored.shape, np.int64), f"{name}_shape")
        made = graph.op.Reshape(made, shape)
    for use in uses:
        use.node.owner.set_input(use.node, use.place, made)
    graph.discard(value)
