"""What onnxruntime's own operators demand of the dims of their operands, as onnx does not check it.

A rule returns the fault of a node as words, or None. It only judges dims that are known numbers,
so an unknown type or a symbolic dim is never a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.opset.aspect import Aspect
from tiered.graph.shape_inference.rules.contrib_types import matrix_factors
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.types import Dim, Shape

_DOMAIN: Final = "com.microsoft"

Rule = Callable[["Node"], str | None]

CHECKS: Final[Aspect[Rule]] = Aspect("check")

check_rule = CHECKS.rule
"""Registers a function as the rule of what operators demand of the dims of their operands."""


def contrib_complaint(model: ModelState) -> str | None:
    """Return the first fault of operands of onnxruntime's operators, in bodies too; or None."""
    return next(_faults(model), None)


def _faults(model: ModelState) -> Iterator[str]:
    for graph in model.graphs():
        for node in graph.nodes:
            rule = CHECKS.of(node)
            if rule is None or node.has_references:
                continue
            fault = rule(node)
            if fault is not None:
                yield f"{node.operator} {node.label!r}: {fault}"


def _rule(*op_types: str) -> Callable[[Rule], Rule]:
    return CHECKS.rule(*op_types, domain=_DOMAIN)


# --- what rules share -----------------------------------------------------------------------------


def _differ(a: Dim, b: Dim) -> bool:
    """Return whether two dims are numbers that differ."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def _shape(node: Node, slot: int) -> Shape | None:
    value = node.input(slot)
    return None if value is None else value.shape


def _text(shape: Shape) -> str:
    return f"[{', '.join(str(dim) for dim in shape)}]"


def _product(node: Node, *slots: int) -> str | None:
    """Return what keeps two operands from being multiplied as matrices."""
    factors = matrix_factors(node, [node.input(slot) for slot in slots])
    if factors is None:
        return None
    first, second = factors
    if _differ(first[-1], second[-2]):
        return f"{_text(first)} is multiplied by {_text(second)}: {first[-1]} is not {second[-2]}"
    return _broadcast([first[:-2], second[:-2]])


def _broadcast(shapes: Sequence[Shape | None]) -> str | None:
    """Return what keeps shapes from being broadcast to one another."""
    known = [shape for shape in shapes if shape is not None]
    for axis in range(1, max(map(len, known), default=0) + 1):
        sizes = {shape[-axis] for shape in known if len(shape) >= axis}
        if len({size for size in sizes if isinstance(size, int) and size != 1}) > 1:
            return f"{' and '.join(map(_text, known))} do not broadcast"
    return None


def _vectors(node: Node, data: Shape | None, *slots: int) -> str | None:
    """Return which operand is not a vector with an element for each of the last dim of the data."""
    for slot in slots:
        vector = _shape(node, slot)
        if vector is None:
            continue
        if len(vector) != 1 or (data and _differ(data[-1], vector[0])):
            wanted = f"[{data[-1]}]" if data else "one dim"
            return f"operand {slot} is {_text(vector)}; it takes {wanted}"
    return None


# --- the rules ------------------------------------------------------------------------------------


@_rule("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul")
@_rule("DynamicQuantizeMatMul", "MatMulIntegerToFloat")
def _matmul(node: Node) -> str | None:
    return _product(node, 0, 1)


@_rule("QGemm")
def _quantized_gemm(node: Node) -> str | None:
    """The inputs are A, its scale and zero point, and B."""
    return _product(node, 0, 3)


@_rule("FusedGemm")
def _gemm(node: Node) -> str | None:
    """C broadcasts to the product, not the product to C."""
    factors = matrix_factors(node, list(node.inputs[:2]))
    added = _shape(node, 2)
    if (fault := _product(node, 0, 1)) is not None or factors is None or added is None:
        return fault
    made = (factors[0][-2], factors[1][-1])
    sizes = zip(reversed(added), reversed(made), strict=False)
    if len(added) > len(made) or any(dim != 1 and _differ(dim, size) for dim, size in sizes):
        return f"operand 2 is {_text(added)}, which does not broadcast to {_text(made)}"
    return None


@_rule("BiasGelu", "FastGelu")
def _biased(node: Node) -> str | None:
    return _vectors(node, _shape(node, 0), 1)


@_rule("SkipLayerNormalization")
def _skip_normalization(node: Node) -> str | None:
    """The inputs are X, what is added to it, gamma, beta and a bias."""
    return _skipped(node) or _vectors(node, _shape(node, 0), 2, 3, 4)


@_rule("SkipSimplifiedLayerNormalization")
def _simplified_normalization(node: Node) -> str | None:
    return _skipped(node) or _vectors(node, _shape(node, 0), 2, 3)


def _skipped(node: Node) -> str | None:
    data, skip = _shape(node, 0), _shape(node, 1)
    if data and skip and _differ(data[-1], skip[-1]):
        return f"{_text(skip)} is added to {_text(data)}"
    return None


@_rule("EmbedLayerNormalization")
def _embedding(node: Node) -> str | None:
    """The inputs are ids, segments, three tables, gamma and beta."""
    return _vectors(node, _shape(node, 2), 5, 6)


@_rule("QLinearAdd", "QLinearMul")
def _quantized_pair(node: Node) -> str | None:
    """The inputs are A, its scale and zero point, and B."""
    return _broadcast([_shape(node, 0), _shape(node, 3)])


@_rule("QLinearWhere")
def _quantized_where(node: Node) -> str | None:
    """The inputs are the condition, X, its scale and zero point, and Y."""
    return _broadcast([_shape(node, slot) for slot in (0, 1, 4)])


@_rule("QLinearConcat")
def _quantized_concat(node: Node) -> str | None:
    """The inputs are scale and zero point of the output, then each part with its own two."""
    shapes = [_shape(node, slot) for slot in range(2, len(node.inputs), 3)]
    known = [shape for shape in shapes if shape is not None]
    joined = node.attributes.get("axis", 0)
    for shape in known[1:]:
        other = known[0]
        fits = len(shape) == len(other) and not any(
            _differ(a, b)
            for axis, (a, b) in enumerate(zip(other, shape, strict=True))
            if axis not in (joined, joined + len(shape))
        )
        if not fits:
            return f"{_text(shape)} is joined to {_text(other)} at axis {joined}"
    return None


@_rule("FusedConv")
def _conv(node: Node) -> str | None:
    """A filter reads the channels of its group, and makes one channel of the output."""
    data, weight, bias = (_shape(node, slot) for slot in range(3))
    if not weight or len(weight) < 3:
        return None
    group, channels = node.attributes.get("group", 1), weight[1]
    if data and isinstance(channels, int):
        found, read = data[1], channels * group
        if isinstance(found, int) and found != read:
            return f"{_text(data)} has {counted(found, 'channel')}; the filters read {read}"
    if bias is not None and (len(bias) != 1 or _differ(bias[0], weight[0])):
        return f"operand 2 is {_text(bias)}; it takes [{weight[0]}]"
    return None


@_rule("MatMulNBits")
def _blocks(node: Node) -> str | None:
    data, depth = _shape(node, 0), node.attributes.get("K")
    if data and _differ(data[-1], depth):
        return f"operand 0 is {_text(data)}; its last dim should be K = {depth}"
    return None


@_rule("Attention")
def _attention(node: Node) -> str | None:
    """The inputs are X, the matrices of queries, keys and values side by side, and their bias."""
    data, weight = _shape(node, 0), _shape(node, 1)
    if data and weight and _differ(data[-1], weight[0]):
        return f"{_text(data)} is multiplied by {_text(weight)}: {data[-1]} is not {weight[0]}"
    return _vectors(node, weight, 2)


@_rule("MultiHeadAttention")
def _heads(node: Node) -> str | None:
    """Queries and keys have the same width, unless one operand has both."""
    query, key, heads = _shape(node, 0), _shape(node, 1), node.attributes.get("num_heads")
    if query is None or key is None or len(query) != 3 or len(key) != 3:
        return None
    if _differ(query[-1], key[-1]):
        return f"the queries are {_text(query)}, the keys {_text(key)}"
    if isinstance(query[-1], int) and heads and query[-1] % heads:
        return f"the queries are {_text(query)}, and {heads} heads do not divide {query[-1]}"
    return None
