"""Weights in few bits: a stored constant, and a DequantizeLinear that its readers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.analysis.roles.analysis import few_bit_roles
from tiered.analysis.roles.masks import MASKED, mask_limits
from tiered.graph import DataType, Graph, Model, Node, Tensor, Value
from tiered.graph.core.dtypes import bits_of
from tiered.graph.queries.multiply_adds import LAYERS
from tiered.graph.queries.op_traits import PRODUCTS
from tiered.numerics.precision.few_bits.codes import float8_codes, four_bit_codes, signed_codes
from tiered.numerics.precision.few_bits.compensation import Encode, four_bit_encoder
from tiered.numerics.precision.few_bits.exponents import MEASURED, Exponents
from tiered.numerics.precision.few_bits.operands import Operand, Operands, Sampling
from tiered.numerics.precision.few_bits.returning import OutputBudget, convert_within
from tiered.numerics.precision.lower import OnFound, OnSkip
from tiered.numerics.precision.narrowing import unmatched, why_no_weight, why_skipped
from tiered.rewriter import Skip, Unable
from tiered.support.amounts import counted

Array = np.ndarray[Any, Any]
Keep = Callable[[Node], str]
"""Returns why a node reads its weight as it is; empty if it may be stored otherwise."""

Chooser = Callable[[Sequence[Node]], bool]
"""Returns whether a weight that some nodes read is stored in a format."""

_AT_ONCE: Final = 1 << 18
"""So many numbers of a weight are converted together: as many as a cache holds."""

_FITTED_AT_ONCE: Final = 1 << 22
"""As many if columns are rounded one after the other, so that a column is long."""

_IN_MEMORY: Final = 1 << 20
"""Scales of blocks of so many bytes go to disk: there are as many of them as weights."""

_WEIGHTS: Final = PRODUCTS | {"Gather"}
_SENSITIVE: Final = frozenset({"Conv", "ConvTranspose", "Gather"})
_STORED_DTYPES: Final = (DataType.FLOAT, DataType.FLOAT16)
_OTHER_FLOATS: Final = (DataType.DOUBLE, DataType.BFLOAT16)


class WeightFormat(NamedTuple):
    """How weights are stored.

    Attributes:
        dtype: that of the codes.
        opset: the first one whose DequantizeLinear takes it.
        block: so many numbers share a scale; 0 for a scale for each channel.
        encode: returns what encodes the rows of a weight that a node reads.
        fit: returns what does so for rows that are multiplied by an operand; None for `encode`.
    """

    dtype: DataType
    opset: int
    block: int
    encode: Callable[[Node], Encode]
    fit: Callable[[Array, int, np.dtype[Any], Operand], Encode | None] | None = None


def int8_format(block: int) -> WeightFormat:
    """Return int8, symmetric."""
    return WeightFormat(DataType.INT8, 21 if block else 13, block, lambda node: signed_codes)


def int4_format(block: int) -> WeightFormat:
    """Return uint4 with zero points, in blocks."""
    encode = four_bit_codes
    return WeightFormat(DataType.UINT4, 21, block, lambda node: encode, four_bit_encoder)


def float8_format(low: DataType, exponents: Exponents = MEASURED) -> WeightFormat:
    """Return a float8 type, with a scale for each channel, or with powers of two."""

    @cache
    def encoder(exponent: int | None) -> Encode:
        return partial(float8_codes, low=low, exponent=exponent)

    return WeightFormat(low, 19, 0, lambda node: encoder(exponents.for_node(node)))


class _Reader(NamedTuple):
    """A node that reads a weight.

    Attributes:
        node: it.
        place: the operand that the weight is.
        channel: the axis of the weight that the outputs have.
        behind: the products that read the weight behind a Transpose, which is the node then.
    """

    node: Node
    place: int
    channel: int
    behind: tuple[Node, ...] = ()


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
        skip_op_types: operators whose weights stay.
        skip_nodes: globs of the names of nodes whose weights stay.
        budget: weights return to float until it holds; None for no limit.
        sampling: what operands are measured on, if the format fits codes to them; None to round
            to nearest.
        sensitive: how tables, kernels and the weights of the last products are stored; None for the
            same format.

    Raises:
        UsageError, ModelError, RuntimeFailure, VerificationError: as of `convert_within` and
            `Operands`.
    """
    for text in unmatched(model, skip_op_types, skip_nodes):
        on_found(text)
    model.refresh_types()
    limits, roles = budget or OutputBudget(), few_bit_roles(model)
    known = Encoded() if limits.limit else None

    def convert(kept: Mapping[Node, str], on_found: OnFound, on_skip: OnSkip) -> list[Node]:
        def keep(node: Node) -> str:
            role = roles.get(node)
            own = kept.get(node, "") or why_skipped(node, skip_op_types, skip_nodes)
            return own or (str(role) if role else "")

        found, seen = list[Node](), set[tuple[Node | None, str]]()
        last = last_products(model, min_elements)

        def skip_once(node: Node | None, reason: Skip) -> None:
            if (node, str(reason)) not in seen:
                seen.add((node, str(reason)))
                on_skip(node, reason)

        # Without an operator of the format nothing is stored, in the other one neither.
        other = sensitive if model.opset() >= form.opset else None
        for each in filter(None, (other, form)):
            chooses = _chooser(is_sensitive=each is other, last=last) if other else None
            read = operands if each.fit else None
            found += store_weights(
                model, each, on_found, skip_once, keep, min_elements, known, read, chooses
            )
        return found

    with ExitStack() as stack:
        operands = None
        if sampling is not None and form.fit is not None:
            operands = stack.enter_context(Operands(model, sampling))
        convert_within(model, convert, limits, on_found, on_skip, low=form.dtype)


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
    readers, unfit = _readers(model)
    if chooses is not None and readers:
        readers = {value: uses for value, uses in readers.items() if chooses(_nodes_of(uses))}
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
    chosen, masks = dict[Value, list[_Reader]](), mask_limits(model)
    for value, uses in readers.items():
        is_mask = value in masks
        refused = str(MASKED) if is_mask else _refusal(value, uses, form, min_elements)
        if reason := next(filter(None, map(keep, _nodes_of(uses))), refused):
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
    for text in tally.findings(form.dtype, operands):
        on_found(text)
    return list(dict.fromkeys(edited))


def _nodes_of(uses: Sequence[_Reader]) -> list[Node]:
    """Return the nodes that read a weight, behind a Transpose too."""
    return [node for use in uses for node in (use.node, *use.behind)]


def _chooser(*, is_sensitive: bool, last: Collection[Node]) -> Chooser:
    """Return what chooses the weights whose rounding costs most, or the others."""

    def choose(nodes: Sequence[Node]) -> bool:
        return is_sensitive == any(node in last or node.op_type in _SENSITIVE for node in nodes)

    return choose


def last_products(model: Model, least: int) -> set[Node]:
    """Return the products of the main graph that no other layer depends on, as the head of a model.

    Their rounding reaches the outputs as it is. A model of one layer has none.

    Args:
        model: the model.
        least: products with a weight of fewer elements stay float, and do not count.
    """
    found, before, layers = set[Node](), set[Node](), 0
    for node in reversed(model.main.topological_order()):
        is_counted = _is_layer(node, least)
        layers += is_counted
        if is_counted and node not in before:
            found.add(node)
        if is_counted or node in before:
            producers = (value.producer for value in node.inputs if value is not None)
            before.update(producer for producer in producers if producer is not None)
    return found if layers > len(found) else set()


def _is_layer(node: Node, least: int) -> bool:
    """Return whether a node is a product or made of such, and has no small weight."""
    if node.domain or node.op_type not in (_WEIGHTS | LAYERS) - {"Gather"}:
        return False
    tensors = [value.tensor for value in node.inputs[:2] if value is not None]
    return all(tensor is None or tensor.size >= least for tensor in tensors)


def _multiplied(value: Value, uses: list[_Reader]) -> list[Node]:
    """Return the nodes that multiply by a matrix, if all sum over its same axis."""
    is_fit = value.rank == 2 and len({use.channel for use in uses}) == 1
    return [use.node for use in uses] if is_fit else []


class _Tally:
    """Weights that are stored, in numbers."""

    def __init__(self) -> None:
        self._count = self._fitted = self._before = self._after = 0
        self._worst: tuple[float, str] = (math.inf, "")

    def add(self, value: Value, stored: _Stored) -> None:
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
    reader: _Reader,
    form: WeightFormat,
    known: Encoded | None,
    operands: Operands | None,
) -> _Stored | None:
    """Return a weight in few bits, from what is known if it is there."""
    if known is not None and value in known:
        return known[value]
    assert value.tensor is not None
    operand = None if operands is None else operands.of(value)
    stored = _encoded(value.tensor.numpy(), reader, form, operand)
    if known is not None:
        known[value] = stored
    return stored


def _readers(model: Model) -> tuple[dict[Value, list[_Reader]], dict[Node, str]]:
    """Return the constants that are weights, with the nodes that read them as such.

    And the nodes with a weight that has no form in few bits, with the reason.
    """
    found: dict[Value, list[_Reader]] = {}
    unfit: dict[Node, str] = {}
    for graph in model.graphs():
        if graph.is_function:
            continue
        for node in graph.topological_order():
            place = _place(node)
            value = None if place is None else node.input(place)
            if place is None or value is None or not value.is_constant:
                if refusal := "" if node.is_op("Transpose") else why_no_weight(value):
                    unfit[node] = refusal
                continue
            channel = _channel(node, place, value)
            if isinstance(channel, int):
                behind = tuple(node.output.readers) if node.is_op("Transpose") else ()
                found.setdefault(value, []).append(_Reader(node, place, channel, behind))
            elif channel:
                unfit[node] = channel
    return found, unfit


def _place(node: Node) -> int | None:
    """Return the operand of a node that may be a weight; None for no such node."""
    if node.is_op("Transpose"):
        # A tied table: a Gather reads it, and products read its columns.
        output, readers = node.output, node.output.readers
        is_right = all(
            (each.is_op("MatMul") or each.is_op("Gemm"))
            and each.input(1) is output
            and each.input(0) is not output
            for each in readers
        )
        return 0 if readers and is_right and not output.is_graph_output else None
    if node.domain or node.op_type not in _WEIGHTS:
        return None
    first = node.input(0)
    is_left = node.op_type == "MatMul" and first is not None and first.is_constant
    return 0 if is_left or node.op_type == "Gather" else 1


def _channel(node: Node, place: int, value: Value) -> int | str:
    """Return the axis of a weight that the outputs have; why there is none; "" for no weight."""
    if value.dtype in _OTHER_FLOATS and not node.is_op("Transpose"):
        return f"a weight of {DataType(value.dtype).name.lower()} has no form in few bits"
    if value.tensor is None or value.dtype not in _STORED_DTYPES:
        return ""
    if value.tensor.is_sparse:
        return "the weight is sparse"
    rank = len(value.tensor.shape)
    if node.op_type.startswith("Conv"):
        return int(node.op_type == "ConvTranspose")
    if node.is_op("Transpose"):
        return 0 if rank == 2 and list(node.attr("perm") or (1, 0)) == [1, 0] else ""
    if node.is_op("MatMul") and place == 1 and rank > 2:
        return rank - 1
    if rank != 2:
        return f"a weight of {rank} dims has no form in few bits"
    if node.is_op("Gather"):
        return int(node.attr("axis", 0)) % rank
    if node.is_op("MatMul"):
        return place
    return 0 if node.attr("transB", 0) else 1


def _refusal(value: Value, uses: list[_Reader], form: WeightFormat, least: int) -> str:
    """Return why a weight stays; empty if its numbers decide."""
    tensor = value.tensor
    assert tensor is not None
    if tensor.size < max(least, 1):
        return "a small weight"
    if len(value.users) != len(uses) or value.is_graph_output:
        return "another node reads the weight as it is"
    if value.dtype == DataType.FLOAT16 and value.owner.model.opset() < _OPSET_OF_HALVES:
        return "scales of float16 need opset 19"
    if len({form.encode(use.node) for use in uses}) > 1:
        return "its readers have different exponents"
    if form.block and uses[0].node.is_op("ConvTranspose"):
        return "no blocks along the channels of a ConvTranspose"
    columns = tensor.size // tensor.shape[uses[0].channel]
    block = form.block or columns
    scales = (tensor.size // columns) * -(-columns // block)
    bits = tensor.size * form.dtype.bits + scales * (bits_of(tensor.dtype) + 4)
    return "not smaller" if bits >= 8 * tensor.nbytes else ""


_OPSET_OF_HALVES: Final = 19


class _Stored(NamedTuple):
    """A weight in few bits: codes and scales in the order of its axes, or flat.

    Attributes:
        codes: as the weight, or [channels, the rest] for blocks of a kernel.
        scales, zeros: a number for each channel or block.
        axis: of the DequantizeLinear.
        shape: what the result is reshaped to, if that is needed.
        quality: the signal to noise ratio, in dB.
        is_fitted: whether it is rounded for an operand.
    """

    codes: Array
    scales: Array
    zeros: Array | None
    axis: int
    shape: tuple[int, ...] | None
    quality: float
    is_fitted: bool

    @property
    def nbytes(self) -> int:
        """The bytes in a file."""
        arrays = [each for each in (self.codes, self.scales, self.zeros) if each is not None]
        return sum(Tensor(None, each).nbytes for each in arrays)


class Encoded(dict[Value, "_Stored | None"]):
    """The codes of weights; None for one that has NaN or Inf."""


def _encoded(
    weight: Array, reader: _Reader, form: WeightFormat, operand: Operand | None
) -> _Stored | None:
    """Return a weight in few bits; None if a number is not finite."""
    channel = reader.channel
    if form.block and weight.ndim > 2 and channel == weight.ndim - 1:
        matrix = weight.reshape(-1, weight.shape[channel])
        stored = _encoded(matrix, reader._replace(channel=1), form, operand)
        return None if stored is None else stored._replace(shape=weight.shape)
    channels = weight.shape[channel]
    columns = weight.size // channels
    block = form.block or columns
    rows = np.moveaxis(weight, channel, 0)
    fitted = None
    if form.fit is not None and operand is not None:
        fitted = form.fit(rows, block, weight.dtype, operand)
    step = max((_FITTED_AT_ONCE if fitted else _AT_ONCE) // columns, 1)
    encode = fitted or form.encode(reader.node)
    is_turned = bool(form.block) and weight.ndim == 2 and channel == 1
    codes = np.empty((columns, channels) if is_turned else (channels, columns), form.dtype.numpy)
    by_row = codes.T if is_turned else codes
    scale_parts, zero_parts = list[Array](), list[Array]()
    signal = noise = 0.0
    for start in range(0, channels, step):
        part = rows[start : start + step].astype(np.float32).reshape(-1, columns)
        if not np.isfinite(part).all():
            return None
        found = encode(part, block, weight.dtype)
        by_row[start : start + step] = found.codes
        scale_parts.append(found.scales)
        zero_parts += [] if found.zeros is None else [found.zeros]
        signal += float(np.square(part, dtype=np.float64).sum())
        noise += float(np.square(found.numbers(block) - part, dtype=np.float64).sum())
    scales = np.concatenate(scale_parts)
    joined = np.concatenate(zero_parts) if zero_parts else None
    quality = 10 * math.log10(signal / noise) if noise and signal else math.inf
    judged = (quality, fitted is not None)
    if not form.block:
        order = (channels, *np.delete(weight.shape, channel).tolist())
        codes = np.ascontiguousarray(np.moveaxis(codes.reshape(order), 0, channel))
        return _Stored(codes, scales[:, 0], joined, channel, None, *judged)
    if is_turned:
        turned = None if joined is None else np.ascontiguousarray(joined.T)
        return _Stored(codes, np.ascontiguousarray(scales.T), turned, 0, None, *judged)
    shape = None if weight.ndim == 2 else weight.shape
    return _Stored(codes, scales, joined, 1, shape, *judged)


def _replace(value: Value, uses: list[_Reader], stored: _Stored, form: WeightFormat) -> None:
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
