"""Which constants are weights, and which nodes read them as such."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tiered.analysis.roles.role import graphs_of
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.core.dtypes import bits_of
from tiered.graph.queries.op_traits import PRODUCTS
from tiered.numerics.precision.few_bits.formats import WeightFormat
from tiered.numerics.precision.narrowing import why_no_weight
from tiered.support.amounts import counted

_STORED_DTYPES: Final = (DataType.FLOAT, DataType.FLOAT16)
_OTHER_FLOATS: Final = (DataType.DOUBLE, DataType.BFLOAT16)

WEIGHTS: Final = PRODUCTS | {"Gather"}
"""Operators with a weight."""


class WeightReader(NamedTuple):
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


def nodes_of(uses: Sequence[WeightReader]) -> list[Node]:
    """Return the nodes that read a weight, behind a Transpose too."""
    return [node for use in uses for node in (use.node, *use.behind)]


def readers_in(model: Model) -> tuple[dict[Value, list[WeightReader]], dict[Node, str]]:
    """Return the constants that are weights, with the nodes that read them as such.

    And the nodes with a weight that has no form in few bits, with the reason.
    """
    found: dict[Value, list[WeightReader]] = {}
    unfit: dict[Node, str] = {}
    for graph in graphs_of(model):
        for node in graph.topological_order():
            place = _place(node)
            value = None if place is None else node.input(place)
            if place is None or value is None or not value.is_constant:
                if refusal := "" if node.is_op("Transpose") else why_no_weight(value):
                    unfit[node] = refusal
                continue
            known = [operand is None or operand.is_constant for operand in node.inputs]
            if node.op_type in PRODUCTS and all(known):
                unfit[node] = "all that it reads is constant: fold_constant removes it"
                continue
            channel = _channel(node, place, value)
            if isinstance(channel, int):
                behind = tuple(node.output.readers) if node.is_op("Transpose") else ()
                found.setdefault(value, []).append(WeightReader(node, place, channel, behind))
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
    if node.domain or node.op_type not in WEIGHTS:
        return None
    is_left = node.op_type == "MatMul" and node.given(0).is_constant
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
    if place == 1 and rank > 2:
        return rank - 1
    if rank != 2:
        return f"a weight of {counted(rank, 'dim')} has no form in few bits"
    if node.is_op("Gather"):
        return int(node.attr("axis", 0)) % rank
    if node.is_op("MatMul"):
        return place
    return 0 if node.attr("transB", 0) else 1


def refusal_of(value: Value, uses: list[WeightReader], form: WeightFormat, least: int) -> str:
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
