"""Visitors see each expression once; a mutator leaves no node behind, and says what it cannot."""

from typing import Any

import pytest

from tests.recorded import assert_values
from tests.small import model, parsed
from tiered.compat.tvm import relay
from tiered.compat.tvm.expressions.expr import Call, Constant, Op, Tuple, TupleGetItem, Var
from tiered.compat.tvm.expressions.functors import (
    ExprFunctor,
    ExprMutator,
    ExprVisitor,
    all_vars,
    free_vars,
    post_order_visit,
)
from tiered.graph import Model
from tiered.support.errors import UsageError

TEXT = "g (float[2] x) => (float[2] y) { a = Relu(x)  d = Neg(x)  b = Neg(a)  y = Add(a, b) }"


class ReluIsAbs(ExprMutator):
    def visit_call(self, call: Any) -> Any:
        made = super().visit_call(call)
        return relay.abs(made.args[0]) if call.op.name == "nn.relu" else made


def kinds(of: Model) -> list[str]:
    return sorted(node.op_type for node in of.main.nodes)


def test_what_a_mutator_replaced_goes_and_what_nothing_read_before_stays() -> None:
    before = model(TEXT)
    made = ReluIsAbs().visit(before)
    assert kinds(made.model) == ["Abs", "Add", "Neg", "Neg"]
    assert kinds(before) == ["Add", "Neg", "Neg", "Relu"]


def test_a_mutator_that_changes_nothing_returns_the_same_graph() -> None:
    before = model(TEXT)
    assert ExprMutator().visit(before) is before.main


class Seen(ExprVisitor):
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.others: list[str] = []

    def visit_call(self, call: Any) -> None:
        super().visit_call(call)
        self.calls.append(call.op.name)

    def visit_var(self, var: Any) -> None:
        self.others.append(var.name_hint)

    def visit_function(self, fn: Any) -> None:
        self.others.append("function")
        super().visit_function(fn)


def test_each_expression_is_visited_once_after_its_operands() -> None:
    seen = Seen()
    assert seen.visit(model(TEXT)) is None
    assert seen.calls == ["nn.relu", "negative", "add"]
    assert seen.others == ["x", "function"]


@pytest.mark.parametrize(
    "kind", ["function", "call", "var", "constant", "tuple", "tuple_getitem", "op"]
)
def test_a_functor_without_a_method_says_which_one_it_lacks(kind: str) -> None:
    with pytest.raises(NotImplementedError, match=f"ExprFunctor has no visit_{kind}$"):
        getattr(ExprFunctor(), f"visit_{kind}")(None)


def test_what_is_no_expression_is_not_visited() -> None:
    with pytest.raises(UsageError, match="Seen visits a graph or an expression, not 3"):
        Seen().visit(3)


class Returns(ExprMutator):
    """Returns something else for a function."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def visit_function(self, fn: Any) -> Any:
        return self.make(fn)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda fn: 3, r"Returns\.visit_function returned 3"),
        (
            lambda fn: relay.Function(fn.params, relay.Tuple([fn.body, fn.body])),
            r"Returns\.visit_function returned",
        ),
        (
            lambda fn: relay.Function([relay.var("z", shape=(2,))], fn.body),
            "Returns: the inputs of a graph keep their types",
        ),
    ],
)
def test_a_function_keeps_its_interface(make: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Returns(make).visit(model(TEXT))


class Renamed(ExprMutator):
    """Replaces operators by name; None removes them.

    Args:
        to: the names.
    """

    def __init__(self, **to: Any) -> None:
        self.to = to

    def visit_call(self, call: Any) -> Any:
        made = super().visit_call(call)
        name = call.op.name.rpartition(".")[2]
        if name not in self.to:
            return made
        to = self.to[name]
        return made.args[0] if to is None else to(*made.args) if callable(to) else to


class Kept(ExprMutator):
    """Replaces operators and variables by name, and has the other methods as they are."""

    def __init__(self, **to: str) -> None:
        self.to = to

    def visit_op(self, op: Any) -> Any:
        return Op(self.to[op.name]) if op.name in self.to else op

    def visit_var(self, var: Any) -> Any:
        name = var.name_hint
        return Var(self.to[name], None) if name in self.to else var


def after(mutator: ExprMutator, text: str, inputs: str = "float[2] x, bool k") -> object:
    """Return the nodes and the outputs of a graph after a mutator, and whether it is another."""
    given = parsed(f"({inputs}) => (y, z) <float[2] w = {{1,2}}> {{ {text} }}")
    made = mutator.visit(given)
    made.model.check_view()
    graphs = {
        graph.name: [
            f"{node.op_type}{[v and v.name for v in node.inputs]}"
            for node in graph.topological_order()
        ]
        for graph in made.model.graphs()
    }
    return graphs, [value.name for value in made.outputs], made is given.main


def order(of: Any) -> list[str]:
    """Return the expressions of a graph in the order of their visits."""
    found: list[str] = []
    post_order_visit(
        of,
        lambda each: found.append(
            each.op.name
            if isinstance(each, Call)
            else getattr(each, "name_hint", type(each).__name__)
        ),
    )
    return found


def test_visits_and_mutations_are_recorded() -> None:
    x, z = relay.var("x", shape=(2,)), relay.var("z", shape=(2,))
    names = {
        "after": after,
        "Kept": Kept,
        "Renamed": Renamed,
        "relay": relay,
        "order": order,
        "parsed": parsed,
        "all_vars": all_vars,
        "free_vars": free_vars,
        "x": x,
        "z": z,
        "Tuple": Tuple,
        "TupleGetItem": TupleGetItem,
        "Call": Call,
        "Op": Op,
        "Constant": Constant,
        "Var": Var,
    }
    assert_values(__file__, names)
