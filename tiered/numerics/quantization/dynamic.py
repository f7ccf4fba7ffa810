"""Dynamic quantisation: the range of data is that of each run, weights are integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from tiered.analysis.roles.masks import MASKED, mask_limits
from tiered.analysis.roles.model_roles import few_bit_roles
from tiered.analysis.roles.role import graphs_of
from tiered.graph import DataType, Graph, Model, Node, Tensor, Value
from tiered.graph.queries.multiply_adds import LAYERS
from tiered.numerics.precision.few_bits.returning import OutputBudget, convert_within
from tiered.numerics.precision.narrowing import is_chosen, unmatched, why_no_weight
from tiered.numerics.precision.widening import widen_products
from tiered.numerics.quantization.deployed import SATURATION, Processor, saturates, scheme_for
from tiered.numerics.quantization.quantization_plan import (
    NO_PRODUCTS,
    is_dequantized,
    is_layer,
    is_quantized,
    operand_refusal,
    weight_refusal,
)
from tiered.numerics.quantization.scales import Array, Weight, weight_of
from tiered.numerics.quantization.scheme import PRODUCTS, Scheme
from tiered.numerics.quantization.untied import tie_again, untie
from tiered.numerics.quantization.weight_pairs import Order
from tiered.rewriter import Skip
from tiered.support.amounts import counted

OnFound = Callable[[str], None]
OnSkip = Callable[["Node | None", Skip], None]

_FIRST_OPSET: Final = 11
_NO_BUDGET: Final = OutputBudget()


def quantize_dynamically(
    model: Model,
    on_found: OnFound,
    on_skip: OnSkip,
    *,
    convolutions: bool = False,
    reduce_range: bool | None = None,
    processor: Processor | None = None,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    budget: OutputBudget = _NO_BUDGET,
) -> None:
    """Multiply data by constant weights in integers; each activation is quantised once.

    Args:
        model: edited in place.
        on_found: called with each finding.
        on_skip: called with each product that stays float, and the reason.
        convolutions: quantise Conv too, which onnxruntime computes slowly.
        reduce_range: 7 bits for weights; None for 8 bits, within the limits of the processor.
        processor: on which the result runs; None for the one at hand.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
        budget: the limit of the outputs; the worst products return to float until it holds.

    Raises:
        UsageError: the budget is not readable, a file of inputs belongs to no input, or a name of
            `skip_nodes` or `skip_op_types` fits nothing.
        RuntimeFailure: there is a budget, and onnxruntime does not run the model.
        VerificationError: the budget does not hold with all products of the main graph in float.
    """
    budget.check_read()
    model.refresh_types()
    for text in unmatched(model, skip_op_types, skip_nodes):
        on_found(text)
    was_quantized = is_quantized(model)
    if not was_quantized:
        for text in widen_products(model, PRODUCTS):
            on_found(text)
    tied = {} if was_quantized else untie(model)
    roles, limits = few_bit_roles(model), mask_limits(model)
    products = [
        node for graph in graphs_of(model) for node in graph.topological_order() if is_layer(node)
    ]

    def why_float(node: Node) -> str:
        if is_chosen(node, skip_op_types, skip_nodes):
            return "the node is skipped"
        if node.op_type in LAYERS:
            return f"there is no dynamic integer {node.op_type}"
        if node.op_type == "Conv" and not convolutions:
            return "a Conv is quantised on request only"
        if model.opset() < _FIRST_OPSET:
            return f"DynamicQuantizeLinear needs opset 11, the model has {model.opset()}"
        if node in roles:
            return str(roles[node])
        is_masked = any(value in limits for value in node.inputs[:2])
        return str(MASKED) if is_masked else _refusal(node)

    if not products:
        on_skip(None, NO_PRODUCTS)
        return
    reasons = {node: why_float(node) for node in products}

    def convert(kept: Mapping[Node, str], on_found: OnFound, on_skip: OnSkip) -> list[Node]:
        scheme = scheme_for(Scheme(), processor, reduce_range=reduce_range, is_here=True)
        rewriter = _ProductRewriter(scheme)
        done, operators = [], set[str]()
        for node in products:
            if reason := reasons[node] or kept.get(node, ""):
                on_skip(node, Skip(reason))
                continue
            if not rewriter.rewrite(node):
                operators.add(node.op_type)
            done.append(node)
        if done:
            integer = f"{len(done)} of {len(products)} products are integer"
            on_found(f"{integer}; {counted(len(rewriter.quantized), 'activation')}")
        # Kernels with the weight on the left, as that of ConvInteger, are exact everywhere.
        if saturates(scheme, (name for name in operators if name != "Conv")):
            on_found(SATURATION)
        return done

    try:
        convert_within(
            model,
            convert,
            budget,
            on_found,
            on_skip,
            what="product",
            was_converted=was_quantized,
        )
    finally:
        tie_again(tied)


def _refusal(node: Node) -> str:
    """Return why a product stays float; empty if it has an integer form."""
    x, weight = node.given(0), node.given(1)
    if node.op_type == "ConvTranspose":
        return "there is no integer ConvTranspose"
    if x.dtype != DataType.FLOAT or weight.dtype != DataType.FLOAT:
        return operand_refusal(x if x.dtype != DataType.FLOAT else weight)
    if is_dequantized(x):
        return "data is quantised already"
    if x.is_constant:
        return _left_refusal(node, x, weight)
    if not weight.is_constant:
        return why_no_weight(weight) or "the second operand is not a constant weight"
    if refusal := weight_refusal(weight):
        return refusal
    tensor = weight.tensor
    assert tensor is not None
    if len(tensor.shape) < 2:
        return "the weight is a vector"
    if node.op_type == "MatMul" and len(tensor.shape) > 2 and (x.rank or 0) < 2:
        return "data of several matrices is not known to have two axes"
    if node.attr("transA"):
        return "data is transposed"
    return "an empty operand" if x.shape is not None and 0 in x.shape else ""


def _left_refusal(node: Node, weight: Value, data: Value) -> str:
    """Return why a product with a constant on its left stays float; empty if it need not."""
    if data.is_constant:
        return "no operand is data"
    if is_dequantized(data):
        return "data is quantised already"
    if refusal := weight_refusal(weight):
        return refusal
    if weight.rank != _MATRIX or (data.rank or 0) < _MATRIX:
        return "one of the operands is not known to be a matrix"
    if node.attr("transB"):
        return "data is transposed"
    return "an empty operand" if data.shape is not None and 0 in data.shape else ""


_MATRIX: Final = 2


class _Data(NamedTuple):
    q: Value
    scale: Value
    zero: Value


class _ProductRewriter:
    """The rewrite of products; activations and weights are quantised once each."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.quantized: dict[Value, _Data] = {}
        self.weights: dict[tuple[Value, int], tuple[Value, Weight]] = {}
        self.lefts: dict[tuple[Value, bool], tuple[Value, Weight]] = {}

    def rewrite(self, node: Node) -> bool:
        """Replace a product by one of integers, a Cast, and the scales.

        Return whether the weight is on the left.
        """
        x, weight = node.given(0), node.given(1)
        is_left = x.is_constant
        x, weight = (weight, x) if is_left else (x, weight)
        graph, data = node.owner, self._data(x)
        since = graph.model.peek_serial()
        if is_left:
            is_transposed = bool(node.attr("transA"))
            codes, found = self._rows(weight, is_transposed=is_transposed)
            sums = graph.op.MatMulInteger(codes, data.q, None, data.zero)
            scales = found.scales.reshape(-1, 1)
        elif node.op_type == "Conv":
            codes, found = self._weight(weight, 0)
            settings = node.settings
            sums = graph.op.ConvInteger(data.q, codes, data.zero, **settings)
            dims = (-1, *[1] * (len(found.codes.shape) - 2))
            scales = found.scales.reshape(dims)
        else:
            is_transposed = bool(node.attr("transB"))
            codes, found = self._matrices(weight, is_transposed=is_transposed)
            sums = graph.op.MatMulInteger(data.q, codes, data.zero)
            scales = found.scales
        if node.op_type == "Gemm":
            scales = (scales * np.float32(node.attr("alpha"))).astype(np.float32)
        steps = graph.constant(scales, f"{weight.name}_scale")
        result = graph.op.Cast(sums, to=int(DataType.FLOAT))
        if is_left:  # onnxruntime fuses a product by one factor into an operator without a kernel
            result = graph.op.Mul(graph.op.Mul(result, steps), data.scale)
        else:
            result = graph.op.Mul(result, graph.op.Mul(data.scale, steps))
        made = self._biased(graph, node, result, len(found.codes.shape))
        graph.replace(node, [made], since)
        return is_left

    def _rows(self, value: Value, *, is_transposed: bool) -> tuple[Value, Weight]:
        """Return a matrix in integers, with a scale for each row, for a product by its right."""
        key = value, is_transposed
        if key not in self.lefts:
            assert value.tensor is not None
            array = value.tensor.numpy()
            rows = np.ascontiguousarray(array.T) if is_transposed else array
            weight = weight_of(rows, 0, self.scheme, least=None)
            assert weight is not None, "a weight that is not finite is refused"
            self.lefts[key] = self._constant(value, weight.codes), weight
        return self.lefts[key]

    def _data(self, x: Value) -> _Data:
        if x not in self.quantized:
            label = f"{x.name}_DynamicQuantizeLinear"
            self.quantized[x] = _Data(*x.owner.op.DynamicQuantizeLinear(x, outputs=3, name=label))
        return self.quantized[x]

    def _weight(self, value: Value, axis: int) -> tuple[Value, Weight]:
        """Return a weight in integers, with a scale for each index of an axis."""
        if (value, axis) not in self.weights:
            assert value.tensor is not None
            weight = weight_of(value.tensor.numpy(), axis, self.scheme, least=None)
            assert weight is not None, "a weight that is not finite is refused"
            self.weights[value, axis] = self._constant(value, weight.codes), weight
        return self.weights[value, axis]

    def _matrices(self, value: Value, *, is_transposed: bool) -> tuple[Value, Weight]:
        """Return a matrix, or several, in integers, with a scale for each column."""
        key = value, 0 if is_transposed else 1
        if key not in self.weights:
            assert value.tensor is not None
            array = value.tensor.numpy()
            columns = array if is_transposed else array.swapaxes(-1, -2)
            flat = np.ascontiguousarray(columns).reshape(-1, columns.shape[-1])
            orders = [Order((0, 1), 1)] if self.scheme.keeps_pairs else []
            weight = weight_of(flat, 0, self.scheme, least=None, orders=orders)
            assert weight is not None, "a weight that is not finite is refused"
            codes = weight.codes.reshape(columns.shape).swapaxes(-1, -2)
            # Scales of several matrices are those of their columns: [matrices, 1, columns].
            several = (*columns.shape[:-2], 1) if array.ndim > 2 else ()
            scales = weight.scales.reshape((*several, columns.shape[-2]))
            stored = self._constant(value, np.ascontiguousarray(codes))
            self.weights[key] = stored, weight._replace(codes=codes, scales=scales)
        return self.weights[key]

    @staticmethod
    def _constant(value: Value, codes: Array) -> Value:
        return value.owner.constant(Tensor.of(codes), f"{value.name}_quantized")

    @staticmethod
    def _biased(graph: Graph, node: Node, result: Value, rank: int) -> Value:
        """Return the sum of a result and the bias of a product, if it has one."""
        bias = node.input(2)
        if bias is None:
            return result
        if node.op_type == "Conv":
            dims = (-1, *[1] * (rank - 2))
            if bias.const is None:
                return graph.op.Add(result, graph.op.Reshape(bias, np.array(dims, np.int64)))
            return graph.op.Add(result, graph.constant(bias.const.reshape(dims), bias.name))
        beta = float(node.attr("beta"))
        if beta == 0.0:
            return result
        if beta != 1.0 and bias.const is not None:
            bias = graph.constant((bias.const * np.float32(beta)).astype(np.float32), bias.name)
        elif beta != 1.0:
            bias = graph.op.Mul(bias, np.array(beta, np.float32))
        return graph.op.Add(result, bias)
