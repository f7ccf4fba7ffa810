"""ONNX's function bodies, in forms that neither cancel nor overflow.

Two laws of real numbers. In floats the left side is wrong for inputs that the kernels take:

    E[x^2] - E[x]^2   =>  E[(x - E[x])^2]                     it cancels for a mean beside which
                                                              the deviation is small
    Log(Exp(x) + 1)   =>  Max(x, 0) + Log(Exp(-Abs(x)) + 1)   it overflows from 89 on in float32
"""

from __future__ import annotations

import onnx
from onnx import helper

Nodes = list[onnx.NodeProto]


def stabilized(body: onnx.FunctionProto) -> None:
    """Put the stable forms in the place of those that cancel or overflow; the rest stays."""
    nodes = [*body.node]
    for law in (_variance, _softplus):
        for node in [*nodes]:
            nodes = law(_Body(nodes), node) or nodes
    del body.node[:]
    body.node.extend(nodes)


class _Body:
    """The nodes of a body, by what they compute and read."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._producer = {name: node for node in nodes for name in node.output}

    def producer(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """Return the node that computes a value, if it is one of these operators."""
        node = self._producer.get(name)
        return node if node is not None and node.op_type in operators else None

    def squared(self, name: str) -> str:
        """Return x, if a value is x * x or x to the power of 2; else ""."""
        node = self.producer(name, "Mul", "Pow")
        if node is None:
            return ""
        if node.op_type == "Mul":
            return node.input[0] if node.input[0] == node.input[1] else ""
        return node.input[0] if self._number(node.input[1]) == 2 else ""

    def is_one(self, name: str) -> bool:
        """Return whether a value is the constant 1, perhaps in another dtype."""
        cast = self.producer(name, "Cast", "CastLike")
        return self._number(name if cast is None else cast.input[0]) == 1

    def _number(self, name: str) -> float | None:
        node = self.producer(name, "Constant")
        for attribute in () if node is None else node.attribute:
            if attribute.HasField("t"):
                array = onnx.numpy_helper.to_array(attribute.t)
                return float(array.ravel()[0]) if array.size == 1 else None
        return None

    def exchanged(self, gone: Nodes, place: onnx.NodeProto, made: Nodes) -> Nodes:
        """Return the nodes with others in the place of one, and without some."""
        kept: Nodes = []
        for node in self.nodes:
            kept += made if node is place else [] if any(node is each for each in gone) else [node]
        return kept


def _variance(body: _Body, node: onnx.NodeProto) -> Nodes | None:
    """Return the nodes with the variance of the differences, if a node subtracts two squares."""
    if node.op_type != "Sub":
        return None
    of_squares, mean = body.producer(node.input[0], "ReduceMean"), body.squared(node.input[1])
    of_numbers = body.producer(mean, "ReduceMean")
    if of_squares is None or of_numbers is None:
        return None
    x = of_numbers.input[0]
    is_same = of_squares.input[1:] == of_numbers.input[1:]
    if body.squared(of_squares.input[0]) != x or not is_same:
        return None
    if list(of_squares.attribute) != list(of_numbers.attribute):
        return None
    (name,) = node.output
    reduced = onnx.NodeProto()
    reduced.CopyFrom(of_squares)
    reduced.input[0], reduced.output[0] = f"{name}_squares", name
    made = [
        helper.make_node("Sub", [x, mean], [f"{name}_apart"]),
        helper.make_node("Mul", [f"{name}_apart", f"{name}_apart"], [f"{name}_squares"]),
        reduced,
    ]
    squares = [body.producer(node.input[1], "Mul", "Pow"), of_squares]
    squares.append(body.producer(of_squares.input[0], "Mul", "Pow"))
    return body.exchanged([each for each in squares if each is not None], node, made)


def _softplus(body: _Body, node: onnx.NodeProto) -> Nodes | None:
    """Return the nodes with a Log of a number from 1 to 2, if a node is Log(Exp(x) + 1)."""
    total = body.producer(node.input[0], "Add") if node.op_type == "Log" else None
    exp = None if total is None else body.producer(total.input[0], "Exp")
    if total is None or exp is None or not body.is_one(total.input[1]):
        return None
    (name,), x, one = node.output, exp.input[0], total.input[1]
    made = [
        helper.make_node("Abs", [x], [f"{name}_size"]),
        helper.make_node("Neg", [f"{name}_size"], [f"{name}_below"]),
        helper.make_node("Exp", [f"{name}_below"], [f"{name}_exp"]),
        helper.make_node("Add", [f"{name}_exp", one], [f"{name}_total"]),
        helper.make_node("Log", [f"{name}_total"], [f"{name}_log"]),
        helper.make_node("Sub", [one, one], [f"{name}_zero"]),
        helper.make_node("Max", [x, f"{name}_zero"], [f"{name}_above"]),
        helper.make_node("Add", [f"{name}_above", f"{name}_log"], [name]),
    ]
    return body.exchanged([total, exp], node, made)
