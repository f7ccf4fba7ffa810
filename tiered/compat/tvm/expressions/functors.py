"""`ExprVisitor` and `ExprMutator`: a method for each kind of expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiered.compat.abstract_class import Abstract
from tiered.compat.returned_model import output_of
from tiered.compat.tvm.expressions.building import Builder, ExpressionReader
from tiered.compat.tvm.expressions.expr import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from tiered.graph import Function as LocalFunction, Graph, Model
from tiered.support.errors import UsageError


class ExprFunctor(Abstract):
    """Calls the method of the kind of an expression, once for each."""

    memo_map: dict[int, tuple[Any, Any]]

    def visit(self, expr: Any) -> Any:
        """Return what the method of an expression returned.

        Raises:
            UsageError: it is no expression.
        """
        if not hasattr(self, "memo_map"):
            self.memo_map = {}  # a subclass may have its own __init__
        known = self.memo_map.get(id(expr))
        if known is None:
            known = self.memo_map[id(expr)] = (expr, self._method(expr)(expr))
        return known[1]

    def _method(self, expr: Any) -> Callable[[Any], Any]:
        match expr:
            case Call():
                return self.visit_call
            case Constant():
                return self.visit_constant
            case Var():
                return self.visit_var
            case TupleGetItem():
                return self.visit_tuple_getitem
            case Tuple():
                return self.visit_tuple
            case Function():
                return self.visit_function
            case Op():
                return self.visit_op
        raise UsageError(f"{type(self).__name__} visits a graph or an expression, not {expr!r}")

    def visit_function(self, fn: Function) -> Any:
        raise self._lacks("visit_function")

    def visit_call(self, call: Call) -> Any:
        raise self._lacks("visit_call")

    def visit_var(self, var: Var) -> Any:
        raise self._lacks("visit_var")

    def visit_constant(self, const: Constant) -> Any:
        raise self._lacks("visit_constant")

    def visit_tuple(self, tup: Tuple) -> Any:
        raise self._lacks("visit_tuple")

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        raise self._lacks("visit_tuple_getitem")

    def visit_op(self, op: Op) -> Any:
        raise self._lacks("visit_op")


class ExprVisitor(ExprFunctor):
    """Visits the expressions of a graph, each after its operands."""

    def visit(self, expr: Any) -> Any:
        """Visit a graph, a model's main graph, or an expression."""
        if isinstance(expr, Model):
            expr = expr.main
        if not isinstance(expr, Graph):
            return super().visit(expr)
        reader = ExpressionReader(expr)
        for node, call in reader.reached():
            self.visit(call)
            for body in node.bodies:
                self.visit(body)
        return self.visit(reader.function())

    def visit_function(self, fn: Function) -> Any:
        for param in fn.params:
            self.visit(param)
        self.visit(fn.body)

    def visit_call(self, call: Call) -> Any:
        self.visit(call.op)
        for arg in call.args:
            if arg is not None:
                self.visit(arg)

    def visit_tuple(self, tup: Tuple) -> Any:
        for field in tup.fields:
            self.visit(field)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        self.visit(op.tuple_value)

    def visit_var(self, var: Var) -> Any:
        return None

    def visit_constant(self, const: Constant) -> Any:
        return None

    def visit_op(self, op: Op) -> Any:
        return None


class ExprMutator(ExprFunctor):
    """Makes another graph: each method returns the expression that takes the place of one.

    The nodes of bodies are visited with the graph around them.
    """

    def visit(self, expr: Any) -> Any:
        """Return the graph after the methods, or the expression for an expression.

        It is a main graph or local function of a copy of the model; the same one if nothing
        changed. A body is returned as it is: it is a part of the graph around it.

        Raises:
            UsageError: a method returned no expression, or the inputs are others.
        """
        if isinstance(expr, Model):
            expr = expr.main
        if not isinstance(expr, Graph):
            return super().visit(expr)
        if expr.parent_node is not None:
            return expr
        graph = _copied(expr)
        with graph.model.transaction():
            changed = self._mutate(graph)
        return graph if changed else expr

    def _mutate(self, graph: Graph) -> bool:
        """Edit a graph and its bodies, and return whether anything changed."""
        reader, builder = ExpressionReader(graph), Builder(graph)
        function, changed = reader.function(), False
        old = [node for node in graph.nodes if node.is_used]
        for node, call in reader.reached():
            made = self.visit(call)
            if made is not call:
                changed = True
                _redirect_bodies(graph, call, builder.values(_checked(self, made)))
            for body in node.bodies:
                changed |= self._mutate(body)
        made = self.visit(function)
        if not isinstance(made, Function) or len(made.results) != len(graph.outputs):
            raise UsageError(f"{type(self).__name__}.visit_function returned {made!r}")
        if [each for each in made.params if each not in function.params]:
            raise UsageError(f"{type(self).__name__}: the inputs of a graph keep their types")
        values = [builder.value(_checked(self, each)) for each in made.results]
        for before, value in zip(list(graph.outputs), values, strict=True):
            if before is not value:
                exchange_output(graph, before, value)
                changed = True
        graph.prune(old)
        return changed

    def visit_function(self, fn: Function) -> Any:
        params, body = [self.visit(param) for param in fn.params], self.visit(fn.body)
        same = body is fn.body and all(a is b for a, b in zip(params, fn.params, strict=True))
        return fn if same else Function(params, body)

    def visit_call(self, call: Call) -> Any:
        op = self.visit(call.op)
        args = [None if arg is None else self.visit(arg) for arg in call.args]
        if op is call.op and all(a is b for a, b in zip(args, call.args, strict=True)):
            return call
        made = Call(op, args, call.attrs)
        made.is_newest = call.is_newest
        if call.node is not None and call.node.bodies:
            made.bodies_of = call.node
        return made

    def visit_tuple(self, tup: Tuple) -> Any:
        fields = [self.visit(field) for field in tup.fields]
        same = all(a is b for a, b in zip(fields, tup.fields, strict=True))
        return tup if same else Tuple(fields)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        made = self.visit(op.tuple_value)
        return op if made is op.tuple_value else TupleGetItem(made, op.index)

    def visit_var(self, var: Var) -> Any:
        return var

    def visit_constant(self, const: Constant) -> Any:
        return const

    def visit_op(self, op: Op) -> Any:
        return op


def _checked(mutator: ExprMutator, made: Any) -> Expr:
    if not isinstance(made, Expr):
        raise UsageError(f"{type(mutator).__name__} returned {made!r}: expected an expression")
    return made


def _copied(graph: Graph) -> Graph:
    """Return the graph of a copy of the model."""
    model = graph.model
    assert isinstance(model, Model)
    copy = model.copy()
    if not isinstance(graph, LocalFunction):
        return copy.main
    found = copy.function(*graph.id)
    assert found is not None
    return found


def _redirect_bodies(graph: Graph, call: Call, values: Any) -> None:
    """Let bodies that capture a value of a call capture the new one."""
    for before, after in zip(call.values, values, strict=False):
        if before is None or after is None:
            continue
        for use in list(before.users):
            if use.node.owner is not graph:
                use.node.owner.set_input(use.node, use.slot, after)


def exchange_output(graph: Graph, before: Any, after: Any) -> None:
    """Return another value from a graph; the output keeps its name."""
    name = before.name
    after = output_of(graph, after)
    graph.exchange_output(before, after)
    if not before.is_graph_input:
        graph.rename_value(before, graph.model.names.fresh(name))
        graph.rename_value(after, name)


def post_order_visit(expr: Any, fvisit: Callable[[Expr], object]) -> None:
    """Call a function with each expression of a graph, each after its operands."""

    class Visits(ExprVisitor):
        def visit(self, expr: Any) -> Any:
            is_new = isinstance(expr, Expr) and id(expr) not in getattr(self, "memo_map", {})
            found = super().visit(expr)
            if is_new:
                fvisit(expr)
            return found

    Visits().visit(expr)


def all_vars(expr: Any) -> list[Var]:
    """Return the variables of an expression, each once, in the order of their first use."""
    found = list[Var]()
    post_order_visit(expr, lambda each: found.append(each) if isinstance(each, Var) else None)
    return found


def free_vars(expr: Any) -> list[Var]:
    """Return the variables of an expression that are no inputs of a function in it."""
    bound = set[Var]()
    post_order_visit(
        expr, lambda each: bound.update(each.params) if isinstance(each, Function) else None
    )
    return [each for each in all_vars(expr) if each not in bound]
