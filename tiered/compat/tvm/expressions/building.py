"""Graphs as expressions, and expressions as graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from onnx import helper

from tiered.compat.returned_model import output_of
from tiered.compat.tvm.expressions.expr import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    elem_type,
)
from tiered.graph import Graph, Model, Node, Value
from tiered.support.errors import UsageError

_OPSET, _IR = 21, 10
"""The versions of a model that is made of a function."""


class ExpressionReader:
    """The expressions of a graph, one for each of its nodes and values.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._of: dict[Node | Value, Expr] = {}
        self.calls = {
            node: self._call(node) for node in graph.topological_order() if _is_call(node)
        }

    def _call(self, node: Node) -> Call:
        args = [None if value is None else self.expr(value) for value in node.inputs]
        call = Call(Op.of(node), args, node.attributes, node=node)
        self._of[node] = call
        return call

    def expr(self, value: Value) -> Expr:
        """Return the expression of a value."""
        if value not in self._of:
            self._of[value] = self._new(value)
        return self._of[value]

    def _new(self, value: Value) -> Expr:
        call = self._of.get(value.producer) if value.producer is not None else None
        if isinstance(call, Call):
            return call if len(call.values) == 1 else TupleGetItem(call, value.index)
        if value.is_constant:
            return Constant(None, value)
        return Var(value.name, None, value)

    def function(self) -> Function:
        """Return the graph as a function."""
        results = [self.expr(value) for value in self.graph.outputs]
        params = [expr for value in self.graph.inputs if isinstance(expr := self.expr(value), Var)]
        return Function(params, results[0] if len(results) == 1 else Tuple(results))

    def reached(self) -> Iterator[tuple[Node, Call]]:
        """Yield the nodes that an output needs, each after its operands, with their calls."""
        for node, call in self.calls.items():
            if node.is_used:
                yield node, call


def _is_call(node: Node) -> bool:
    return not node.is_op("Constant")


class Builder:
    """Makes the nodes of new expressions in a graph.

    Args:
        graph: the graph.
        params: the values of variables that are new.
    """

    def __init__(self, graph: Graph, params: dict[Var, Value] | None = None) -> None:
        self.graph = graph
        self._made: dict[Expr, tuple[Value | None, ...]] = {}
        self._made.update({each: (value,) for each, value in (params or {}).items()})

    def value(self, expr: Any) -> Value:
        """Return the value of an expression with one.

        Raises:
            UsageError: it has several, or a variable is no input.
        """
        values = self.values(expr)
        if len(values) != 1 or values[0] is None:
            raise UsageError(f"{expr!r} has {len(values)} values: take one by its index")
        return values[0]

    def values(self, expr: Any) -> tuple[Value | None, ...]:
        """Return the values of an expression, and make what is new of it."""
        pending = [expr]
        while pending:
            top = pending.pop()
            if self._known(top) is not None:
                continue
            missing = [each for each in _parts(top) if self._known(each) is None]
            if missing:
                pending += [top, *missing]
            else:
                self._made[top] = self._make(top)
        found = self._known(expr)
        assert found is not None
        return found

    def _known(self, expr: Any) -> tuple[Value | None, ...] | None:
        if expr is None or isinstance(expr, Value):
            return (expr,)
        if expr in self._made:
            return self._made[expr]
        values = expr.values if isinstance(expr, Expr) else ()
        return values if values and _is_seen(self.graph, values) else None

    def _make(self, expr: Expr) -> tuple[Value | None, ...]:
        match expr:
            case Constant():
                return (self.graph.constant(expr.data.numpy()),)
            case Tuple():
                return tuple(self.value(each) for each in expr.fields)
            case TupleGetItem():
                return self.values(expr.tuple_value)[expr.index : expr.index + 1]
            case Call():
                return self._node(expr)
            case Var():
                raise UsageError(f"the variable {expr.name_hint!r} is no input of the function")
        raise UsageError(f"{expr!r} cannot be a part of a graph")

    def _node(self, call: Call) -> tuple[Value | None, ...]:
        inputs: list[Value | None] = []
        for arg in call.args:
            inputs += self.values(arg)
        if call.bodies_of is not None:
            call.bodies_of.owner.set_inputs(call.bodies_of, inputs)
            return call.bodies_of.outputs
        domain, _, op_type = call.op.operators[0].rpartition("::")
        if call.is_newest and not domain:
            value: Value = self.graph.op.named(op_type)(*inputs, **call.attrs)
            return (value,)
        made = self.graph.add_node(
            op_type, inputs, call.op.outputs, dict(call.attrs), domain=domain
        )
        return made.outputs


def _parts(expr: Any) -> Sequence[Any]:
    match expr:
        case Call():
            return expr.args
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple_value,)
    return ()


def _is_seen(graph: Graph, values: Sequence[Value | None]) -> bool:
    return all(value is None or (value.graph is not None and graph.sees(value)) for value in values)


def model_of(function: Function) -> Model:
    """Return the model of a function of new expressions.

    Raises:
        UsageError: an input has no type, or a variable is no input.
    """
    infos = list[onnx.ValueInfoProto]()
    for param in function.params:
        kind = param.type_annotation
        if kind is None:
            raise UsageError(
                f"the input {param.name_hint!r} needs a shape: relay.var(name, shape=)"
            )
        dims = [dim if isinstance(dim, int) else str(dim) for dim in kind.shape]
        infos.append(helper.make_tensor_value_info(param.name_hint, elem_type(kind.dtype), dims))
    opsets = [helper.make_opsetid("", _OPSET)]
    empty = helper.make_graph([], "main", infos, [])
    model = Model.from_proto(helper.make_model(empty, opset_imports=opsets, ir_version=_IR))
    graph = model.main
    builder = Builder(graph, dict(zip(function.params, graph.inputs, strict=True)))
    for result in function.results:
        graph.add_output(output_of(graph, builder.value(result)))
    return model
