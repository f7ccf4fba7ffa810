"""Passes that are wrong on purpose, each in a way in which passes have been wrong.

They change every node of one operator, whether that is right or not, and promise that the outputs
stay the same. `tests/extensions/debug/test_wrong_passes.py` holds each against a small model;
`python -m tests.extensions.debug.acceptance --models DIR` holds them against whole ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiered import (
    DataType,
    Graph,
    Model,
    Node,
    Pass,
    PassContext,
    Tensor,
    TensorType,
    Value,
    function_pass,
    module_pass,
)

Change = Callable[[Graph, Node], object]


@dataclass(frozen=True)
class Wrong:
    """A wrong pass, what is wrong with it, and a model on which that shows.

    Attributes:
        at: the node that is to be blamed on that model.
        kind: how it shows, as in `Blame.kind`.
        feeds: inputs that show it, where ordinary ones do not.
    """

    pass_: Pass
    flaw: str
    model: str
    at: str
    kind: str = "outputs"
    feeds: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.pass_.name


WRONG: list[Wrong] = []


def wrong(
    op_type: str, flaw: str, model: str, at: str, *, numerics: str = "exact", **shown: Any
) -> Callable[[Change], Change]:
    """Make a pass of a function that changes one node, and enter it into the list."""

    def decorate(change: Change) -> Change:
        def run(graph: Graph, ctx: PassContext) -> None:
            for node in graph.nodes_of(op_type):
                if node.is_live and not node.has_references:
                    with graph.rewrite(flaw, node):
                        change(graph, node)

        made = function_pass(opt_level=1, name=change.__name__, numerics=numerics)(run)
        WRONG.append(Wrong(made, flaw, model, at, **shown))
        return change

    return decorate


def _give(graph: Graph, node: Node, index: int, array: Any) -> None:
    graph.set_input(node, index, graph.constant(np.asarray(array)))


def _put_behind(graph: Graph, value: Value, make: Callable[[Value], Value]) -> None:
    """Let everything that reads a value read what is made of it."""
    first = graph.model.peek_serial()
    graph.replace_uses(value, make(value), since=first)


def _float(value: Value | None) -> Any:
    """Return the constant floats of an operand, else None."""
    array = None if value is None else value.const
    return array if array is not None and array.dtype == np.float32 else None


# --- operands -------------------------------------------------------------------------------------


@wrong(
    "Sub",
    "operands swapped",
    "(float[3] x, float[3] z) => (float[3] y) { [k] a = Add(x, z)  [s] b = Sub(a, z)  y = Neg(b) }",
    "s",
)
def swap_operands_of_sub(graph: Graph, node: Node) -> None:
    graph.set_inputs(node, [node.inputs[1], node.inputs[0]])


@wrong(
    "Div",
    "operands swapped",
    "(float[3] x) => (float[3] y) <float c = {3}> { [d] a = Div(x, c)  y = Neg(a) }",
    "d",
)
def swap_operands_of_div(graph: Graph, node: Node) -> None:
    graph.set_inputs(node, [node.inputs[1], node.inputs[0]])


@wrong(
    "Where",
    "branches swapped",
    """(float[4] x) => (float[4] y) <float c = {0}> {
        m = Greater(x, c)  n = Neg(x)  [w] y = Where(m, x, n) }""",
    "w",
)
def swap_branches_of_where(graph: Graph, node: Node) -> None:
    graph.set_inputs(node, [node.inputs[0], node.inputs[2], node.inputs[1]])


@wrong(
    "Concat",
    "operands in reverse order",
    "(float[2] x, float[2] z) => (float[4] y) { a = Neg(x)  [c] y = Concat <axis = 0> (a, z) }",
    "c",
)
def reverse_concat(graph: Graph, node: Node) -> None:
    if len({str(value and value.type) for value in node.inputs}) == 1:
        graph.set_inputs(node, node.inputs[::-1])


@wrong(
    "Add",
    "the first operand read twice",
    "(float[3] x, float[3] z) => (float[3] y) { a = Neg(x)  [p] y = Add(a, z) }",
    "p",
)
def read_operand_twice(graph: Graph, node: Node) -> None:
    a, b = node.inputs
    if a and b and a is not b and a.shape == b.shape and a.dtype == b.dtype:
        graph.set_input(node, 1, a)


@wrong(
    "MatMul",
    "a square weight transposed",
    """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
        [m] a = MatMul(x, w)  y = Neg(a) }""",
    "m",
)
def transpose_square_weight(graph: Graph, node: Node) -> None:
    weight = _float(node.inputs[1])
    if weight is not None and weight.ndim == 2 and weight.shape[0] == weight.shape[1]:
        _give(graph, node, 1, weight.T.copy())


@wrong(
    "MatMul",
    "merged with a product of the same operand and another weight",
    """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}, float[2,2] v = {5,6,7,8}> {
        [m] a = MatMul(x, w)  [n] b = MatMul(x, v)  y = Sub(a, b) }""",
    "n",
)
def merge_by_first_operand(graph: Graph, node: Node) -> None:
    read = node.inputs[0]
    for other in read.readers if read else ():
        if other < node and other.op_type == "MatMul" and other.graph is graph:
            weights = [each.inputs[1] for each in (other, node)]
            if all(weight and weight.const is not None for weight in weights):
                graph.replace(node, other.outputs)
                return


# --- axes and shapes ------------------------------------------------------------------------------


@wrong(
    "Softmax",
    "another axis",
    "(float[3,3] x) => (float[3,3] y) { a = Neg(x)  [s] y = Softmax <axis = -1> (a) }",
    "s",
)
def change_softmax_axis(graph: Graph, node: Node) -> None:
    value = node.inputs[0]
    if value is not None and (value.rank or 0) > 1:
        graph.set_attribute(node, "axis", -2)


@wrong(
    "Transpose",
    "the inverse permutation",
    """(float[2,2,2] x) => (float[2,2,2] y) {
        a = Neg(x)  [t] y = Transpose <perm = [1, 2, 0]> (a) }""",
    "t",
)
def invert_permutation(graph: Graph, node: Node) -> None:
    perm = node.attr("perm", None)
    if perm is not None:
        inverse = [int(axis) for axis in np.argsort(perm)]
        if inverse != list(perm):
            graph.set_attribute(node, "perm", inverse)


@wrong(
    "Transpose",
    "two permutations composed backwards",
    """(float[2,2,2] x) => (float[2,2,2] y) {
        [a] u = Transpose <perm = [1, 2, 0]> (x)  [b] y = Transpose <perm = [0, 2, 1]> (u) }""",
    "b",
)
def compose_backwards(graph: Graph, node: Node) -> None:
    before = node.inputs[0].producer if node.inputs[0] else None
    if before is not None and before.op_type == "Transpose" and before.inputs[0]:
        first, second = before.attr("perm"), node.attr("perm")
        graph.set_attribute(node, "perm", [second[axis] for axis in first])
        graph.set_input(node, 0, before.inputs[0])
        graph.prune([before])


@wrong(
    "Reshape",
    "a Transpose before it dropped",
    """(float[2,3] x) => (float[6] y) <int64[1] s = {6}> {
        [t] a = Transpose <perm = [1, 0]> (x)  [r] y = Reshape(a, s) }""",
    "r",
)
def drop_transpose_before_reshape(graph: Graph, node: Node) -> None:
    before = node.inputs[0].producer if node.inputs[0] else None
    if before is not None and before.op_type == "Transpose":
        graph.set_input(node, 0, before.inputs[0])
        graph.prune([before])


@wrong(
    "ReduceMean",
    "the sum instead of the mean",
    "(float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { b = Abs(x)  [m] y = ReduceMean(b, a) }",
    "m",
)
def lose_the_divisor(graph: Graph, node: Node) -> None:
    settings = {"keepdims": node.attr("keepdims", 1)}
    made = graph.op.ReduceSum(node.operand("data"), node.operand("axes"), **settings)
    graph.replace(node, [made])


@wrong(
    "Concat",
    "another axis",
    "(float[2,2] x) => (float[2,4] y) { a = Neg(x)  [c] y = Concat <axis = 1> (a, x) }",
    "c",
)
def change_concat_axis(graph: Graph, node: Node) -> None:
    value = node.inputs[0]
    if value is not None and (value.rank or 0) > 1:
        graph.set_attribute(node, "axis", 0)


@wrong(
    "Gather",
    "an index off by one",
    """(float[4] x) => (float[2] y) <int64[2] i = {0,2}> { a = Neg(x)  [g] y = Gather(a, i) }""",
    "g",
)
def shift_gather_index(graph: Graph, node: Node) -> None:
    index = node.inputs[1].const if node.inputs[1] else None
    if index is not None and index.size:
        _give(graph, node, 1, index + 1)


@wrong(
    "Slice",
    "a start off by one",
    """(float[6] x) => (float[5] y) <int64[1] s = {1}, int64[1] e = {6}, int64[1] a = {0}> {
        b = Neg(x)  [c] y = Slice(b, s, e, a) }""",
    "c",
)
def shift_slice_start(graph: Graph, node: Node) -> None:
    start = node.inputs[1].const if len(node.inputs) > 1 and node.inputs[1] else None
    if start is not None and start.size:
        _give(graph, node, 1, start + 1)


@wrong(
    "Unsqueeze",
    "another axis",
    """(float[3] x) => (float[n,m] y) <int64[1] a = {0}> {
        [u] b = Unsqueeze(x, a)  c = Neg(x)  y = Mul(b, c) }""",
    "u",
)
def change_unsqueeze_axis(graph: Graph, node: Node) -> None:
    axes = node.operand("axes")
    if axes is not None and axes.const is not None and node.inputs[0] is not None:
        graph.replace(node, [graph.op.Unsqueeze(node.inputs[0], np.array([-1]))])


@wrong(
    "Add",
    "a bias broadcast along another axis",
    "(float[3,3] x) => (float[3,3] y) <float[3] b = {1,2,3}> { a = Neg(x)  [p] y = Add(a, b) }",
    "p",
)
def broadcast_along_another_axis(graph: Graph, node: Node) -> None:
    for index, value in enumerate(node.inputs):
        bias = _float(value)
        if bias is not None and bias.ndim == 1 and bias.size > 1:
            _give(graph, node, index, bias[:, None].copy())


# --- constants ------------------------------------------------------------------------------------


@wrong(
    "Mul",
    "a constant off by one in its last bit",
    "(float[3] x) => (float[3] y) <float c = {0.7}> { a = Neg(x)  [m] y = Mul(a, c) }",
    "m",
)
def nudge_constant(graph: Graph, node: Node) -> None:
    for index, value in enumerate(node.inputs):
        constant = _float(value)
        if constant is not None and constant.size == 1:
            _give(graph, node, index, np.nextafter(constant, np.float32(np.inf)))


@wrong(
    "LayerNormalization",
    "another epsilon",
    """(float[2,4] x) => (float[2,4] y) <float[4] s = {1,1,1,1}> {
        a = Neg(x)  [l] y = LayerNormalization <epsilon = 0.00001> (a, s) }""",
    "l",
)
def change_epsilon(graph: Graph, node: Node) -> None:
    graph.set_attribute(node, "epsilon", 2 * float(node.attr("epsilon", 1e-5)))


@wrong(
    "BatchNormalization",
    "epsilon left out",
    """(float[1,2,3] x) => (float[1,2,3] y) <float[2] s = {1,2}, float[2] b = {0,1},
        float[2] m = {0,1}, float[2] v = {0.1,0.2}> {
        a = Neg(x)  [n] y = BatchNormalization <epsilon = 0.01> (a, s, b, m, v) }""",
    "n",
)
def leave_epsilon_out(graph: Graph, node: Node) -> None:
    graph.set_attribute(node, "epsilon", 0.0)


@wrong(
    "Mul",
    "a constant that others read doubled in place",
    """(float[3] x) => (float[3] y) <float c = {0.7}, float h = {0.5}> {
        [m] a = Mul(x, c)  b = Add(a, c)  y = Neg(b) }""",
    "m",
)
def edit_shared_weight(graph: Graph, node: Node) -> None:
    for value in node.inputs:
        constant = _float(value)
        if value and constant is not None and value.is_initializer and not value.has_one_user:
            graph.set_constant(value, Tensor.of(constant * 2))
            _put_behind(graph, node.output, lambda x: graph.op.Mul(x, np.array(0.5, np.float32)))
            return


@wrong(
    "MatMul",
    "a weight rounded to half precision",
    """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {0.1,2,3,4}> {
        [m] a = MatMul(x, w)  y = Neg(a) }""",
    "m",
)
def round_weight(graph: Graph, node: Node) -> None:
    weight = _float(node.inputs[1])
    if weight is not None:
        _give(graph, node, 1, weight.astype(np.float16).astype(np.float32))


@wrong(
    "Conv",
    "the kernel flipped",
    """(float[1,1,4] x) => (float[1,1,3] y) <float[1,1,2] w = {1,2}> {
        a = Neg(x)  [c] y = Conv(a, w) }""",
    "c",
)
def flip_kernel(graph: Graph, node: Node) -> None:
    weight = _float(node.inputs[1])
    if weight is not None:
        flipped = weight[..., ::-1].copy()
        if not np.array_equal(flipped, weight):
            _give(graph, node, 1, flipped)


@wrong(
    "Conv",
    "groups ignored in the order of the filters",
    """(float[1,2,4] x) => (float[1,2,3] y) <float[2,1,2] w = {1,2,3,4}> {
        a = Neg(x)  [c] y = Conv <group = 2> (a, w) }""",
    "c",
)
def reorder_filters(graph: Graph, node: Node) -> None:
    weight = _float(node.inputs[1])
    if weight is not None and weight.shape[0] > 1:
        _give(graph, node, 1, weight[::-1].copy())


@wrong(
    "DequantizeLinear",
    "the scale doubled",
    """(float[2] x) => (float[2] y) <float s = {0.5}, int8 z = {0}> {
        q = QuantizeLinear(x, s, z)  [d] y = DequantizeLinear(q, s, z) }""",
    "d",
)
def change_scale(graph: Graph, node: Node) -> None:
    scale = _float(node.inputs[1])
    if scale is not None:
        _give(graph, node, 1, scale * 2)


# --- guards ---------------------------------------------------------------------------------------


@wrong(
    "Relu",
    "dropped, though its operand may be negative",
    "(float[4] x) => (float[4] y) { a = Neg(x)  [r] b = Relu(a)  y = Neg(b) }",
    "r",
)
def drop_relu(graph: Graph, node: Node) -> None:
    graph.replace(node, [node.inputs[0]])


@wrong(
    "Clip",
    "dropped, though its operand may lie outside",
    """(float[4] x) => (float[4] y) <float l = {0}, float h = {6}> {
        a = Neg(x)  [c] b = Clip(a, l, h)  y = Neg(b) }""",
    "c",
)
def drop_clip(graph: Graph, node: Node) -> None:
    graph.replace(node, [node.inputs[0]])


@wrong(
    "Add",
    "a bias taken for zero",
    """(float[3] x) => (float[3] y) <float[3] b = {1,2,3}> {
        a = Neg(x)  [p] c = Add(a, b)  y = Neg(c) }""",
    "p",
)
def drop_bias(graph: Graph, node: Node) -> None:
    for index, value in enumerate(node.inputs):
        bias, other = _float(value), node.inputs[1 - index]
        if bias is not None and bias.ndim == 1 and other is not None and (other.rank or 0) >= 1:
            graph.replace(node, [other])
            return


@wrong(
    "Pow",
    "the exponent taken for a factor",
    "(float[3] x) => (float[3] y) <float e = {2}> { a = Abs(x)  [p] y = Pow(a, e) }",
    "p",
)
def take_exponent_for_factor(graph: Graph, node: Node) -> None:
    base, exponent = node.inputs
    if base and exponent and base.dtype == exponent.dtype:
        graph.replace(node, [graph.op.Mul(base, exponent)])


@wrong(
    "Erf",
    "Tanh, which is not as close as is promised",
    "(float[5] x) => (float[5] y) { a = Neg(x)  [e] y = Erf(a) }",
    "e",
    numerics="reassociating",
)
def take_tanh_for_erf(graph: Graph, node: Node) -> None:
    scaled = graph.op.Mul(node.inputs[0], np.array(1.1283792, np.float32))
    graph.replace(node, [graph.op.Tanh(scaled)])


@wrong(
    "Sqrt",
    "another order of operations, though exactness is promised",
    "(float[9] x) => (float[9] y) { a = Abs(x)  [s] b = Sqrt(a)  y = Neg(b) }",
    "s",
)
def root_by_power(graph: Graph, node: Node) -> None:
    value = node.inputs[0]
    if value is not None and value.dtype == 1:
        power = graph.op.Div(value, graph.op.Sqrt(value))
        graph.replace(node, [graph.op.Mul(power, np.array(1.0000001, np.float32))])


# --- dtypes and special values --------------------------------------------------------------------


@wrong(
    "Softmax",
    "through half precision",
    "(float[2,3] x) => (float[2,3] y) { a = Neg(x)  [s] y = Softmax(a) }",
    "s",
)
def cast_through_half(graph: Graph, node: Node) -> None:
    half = graph.op.Cast(node.inputs[0], to=10)
    graph.set_input(node, 0, graph.op.Cast(half, to=1))


@wrong(
    "Cast",
    "dropped, though it changes the dtype",
    "(int64[3] x) => (float[3] y) { [c] a = Cast <to = 1> (x)  y = Neg(a) }",
    "c",
)
def drop_cast(graph: Graph, node: Node) -> None:
    value = node.inputs[0]
    if value is not None and value.dtype != node.output.dtype and not node.output.is_graph_output:
        graph.replace(node, [value])


@wrong(
    "Where",
    "a selection as products: 0 * Inf is NaN",
    """(float[4] x) => (float[4] y) <float c = {0}, float i = {-inf}> {
        m = Greater(x, c)  [w] y = Where(m, x, i) }""",
    "w",
)
def select_by_product(graph: Graph, node: Node) -> None:
    choice, a, b = node.inputs
    if a and b and a.dtype == b.dtype == 1:
        yes = graph.op.Cast(choice, to=1)
        no = graph.op.Cast(graph.op.Not(choice), to=1)
        graph.replace(node, [graph.op.Add(graph.op.Mul(yes, a), graph.op.Mul(no, b))])


@wrong(
    "Relu",
    "as a minimum, which gives -0.0 for 0.0",
    "(float[4] x) => (float[4] y) { a = Neg(x)  [r] y = Relu(a) }",
    "r",
)
def relu_as_minimum(graph: Graph, node: Node) -> None:
    value = node.inputs[0]
    if value is not None and value.dtype == 1:
        least = graph.op.Min(graph.op.Neg(value), np.array(0, np.float32))
        graph.replace(node, [graph.op.Neg(least)])


@wrong(
    "Add",
    "x + 0.0 taken for x, which it is not where x is -0.0",
    "(float[4] x) => (float[4] y) <float z = {0}> { [p] a = Add(x, z)  y = Neg(a) }",
    "p",
    feeds={"x": np.array([-0.0, 0.0, 1, -1], np.float32)},
)
def drop_zero(graph: Graph, node: Node) -> None:
    zero = _float(node.inputs[1])
    if zero is not None and not zero.any() and zero.ndim == 0:
        graph.replace(node, [node.inputs[0]])


# --- the view and the interface -------------------------------------------------------------------


@wrong(
    "Relu",
    "a type that is not true",
    "(float[4] x) => (float[4] y) { [a] b = Relu(x)  [r] c = Relu(b)  y = Neg(c) }",
    "a",
    kind="view",
)
def lie_about_type(graph: Graph, node: Node) -> None:
    value = node.output
    if not value.is_graph_output and value.rank:
        graph.set_type(value, TensorType(DataType.FLOAT, (7,) * value.rank))


@wrong(
    "If",
    "a value that a body captures exchanged",
    """(bool c, float[2] x, float[2] z) => (float[2] y) {
        a = Neg(x)
        [i] y = If (c) <then_branch = t () => (float[2] u) { u = Exp(a) },
                        else_branch = e () => (float[2] v) { v = Neg(a) }> }""",
    "i",
)
def exchange_captured_value(graph: Graph, node: Node) -> None:
    for value in node.captured:
        for other in graph.inputs:
            if other is not value and other.type == value.type and value.producer:
                for body in node.bodies:
                    for use in value.users:
                        if use.node.graph is body:
                            body.set_input(use.node, use.slot, other)
                return


@wrong(
    "Neg",
    "its own output put in the place of what it reads",
    "(float[3] x) => (float[3] y) { a = Abs(x)  [n] b = Neg(a)  y = Exp(b) }",
    "n",
    kind="error",
)
def make_a_cycle(graph: Graph, node: Node) -> None:
    value = node.inputs[0]
    if value is not None and value.producer is not None:
        twice = graph.op.Neg(graph.op.Neg(value))
        graph.replace_uses(value, twice)


@module_pass(opt_level=1)
def lose_output(model: Model, ctx: PassContext) -> None:
    """Drop the last of several outputs."""
    outputs = model.main.outputs
    if len(outputs) > 1:
        model.main.remove_output(outputs[-1])


WRONG.append(
    Wrong(
        lose_output,
        "an output lost",
        "(float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }",
        "",
    )
)


@module_pass(opt_level=1)
def change_output_dtype(model: Model, ctx: PassContext) -> None:
    """Compute a float output in double."""
    graph = model.main
    for value in graph.outputs:
        if value.dtype == 1 and value.producer is not None:
            with graph.rewrite("an output of another dtype", value.producer):
                # `replace_uses` would refuse it.
                made, name = graph.op.Cast(value, to=11), value.name
                outputs = [made if each is value else each for each in graph.outputs]
                graph.set_graph_outputs(outputs, graph.output_infos)
                graph.rename_value(value, graph.model.names.fresh(name))
                graph.rename_value(made, name)


WRONG.append(
    Wrong(
        change_output_dtype,
        "an output of another dtype",
        "(float[2] x) => (float[2] y) { a = Neg(x)  [b] y = Abs(a) }",
        "b",
    )
)


@module_pass(opt_level=1)
def exchange_outputs(model: Model, ctx: PassContext) -> None:
    """Exchange what the first two outputs compute, if they have one type."""
    outputs = model.main.outputs
    if len(outputs) < 2:
        return
    first, second = outputs[0], outputs[1]
    if str(first.type) == str(second.type) and first.producer and second.producer:
        at = [value.producer.outputs.index(value) for value in (first, second) if value.producer]
        model.main.exchange_outputs(first.producer, at[0], second.producer, at[1])


WRONG.append(
    Wrong(
        exchange_outputs,
        "two outputs exchanged",
        "(float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }",
        "",
    )
)


@function_pass(opt_level=1)
def raise_in_the_middle(graph: Graph, ctx: PassContext) -> None:
    """Rename one node, and fail at the next."""
    for number, node in enumerate(graph.nodes_of("Neg")):
        with graph.rewrite("fails at the second node", node):
            graph.rename_node(node, f"{node.label}_renamed")
            if number:
                raise IndexError("list index out of range")


WRONG.append(
    Wrong(
        raise_in_the_middle,
        "raises after some edits",
        "(float[2] x) => (float[2] y) { [a] u = Neg(x)  [b] v = Abs(u)  [c] y = Neg(v) }",
        "c",
        kind="error",
    )
)
