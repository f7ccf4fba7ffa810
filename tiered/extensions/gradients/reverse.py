"""Reverse mode: from the gradients of some values to those of the values that they depend on.

Source: Griewank and Walther, Evaluating Derivatives, 2nd edition, chapter 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tiered.extensions.gradients.broadcast import reduced_to
from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import GradientRule, NoGradient, Step
from tiered.extensions.gradients.rules import GRADIENTS
from tiered.graph import DataType, Function, Graph, Model, Node, Value
from tiered.graph.core.topological_order import sort_part
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.opset.same_meaning import why_not_at
from tiered.graph.queries.function_body import function_body, has_function_body
from tiered.support.errors import ModelError


class ReverseMode:
    """Adds the nodes of a backward pass to the graphs of a model.

    Args:
        model: the model; new nodes go into its graphs.
        stop_at: labels of nodes and names of values that count as constants.
    """

    def __init__(self, model: Model, stop_at: Collection[str] = ()) -> None:
        self._model = model
        self._stop_at = frozenset(stop_at)
        self._constants: set[Value | None] = set()
        self._functions = {function.id: function for function in model.functions}
        self._bodies: dict[bytes, Function] = {}

    def release(self) -> None:
        """Remove the function bodies of operators, which the model has as functions until then."""
        for function in self._bodies.values():
            self._model.remove(function)
        self._bodies.clear()

    def __call__(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        seeds: Mapping[Value, Value],
        targets: Collection[Value],
    ) -> dict[Value, Value]:
        """Add the backward pass of some nodes, and return the gradients that are not zero.

        Args:
            graph: the graph that gets the new nodes; it sees all values.
            nodes: the nodes of the forward pass, producers first.
            seeds: the gradients of values, each in the shape and dtype of its value.
            targets: the values whose gradients are wanted.

        Raises:
            NoGradient: a node between has no rule that applies.
        """
        active = self._active(nodes, targets)
        parts: dict[Value, list[Value]] = {value: [seed] for value, seed in seeds.items()}
        for node in reversed(nodes):
            if not any(value in active for value in node.reads):
                continue
            grads = [_total(graph, node, parts, value) for value in node.outputs]
            if any(value is not None for value in grads) and self._is_differentiated(node, active):
                for value, grad in self._of_node(graph, node, grads, active):
                    parts.setdefault(value, []).append(grad)
        reached = [value for value in targets if value in parts]
        return {value: _sum(graph, parts[value], value.name) for value in reached}

    def note_copies(self, copies: Mapping[Value, Value | None]) -> None:
        """Treat copies of values that count as constants as constants too."""
        self._constants.update(copies[value] for value in copies if self._is_constant(value))

    def _is_constant(self, value: Value) -> bool:
        node = value.producer
        is_named = value.name in self._stop_at or (node is not None and node.label in self._stop_at)
        return is_named or value in self._constants

    def check_rules(self, nodes: Sequence[Node], targets: Collection[Value]) -> None:
        """Raise if the gradient of some nodes needs a rule that does not exist.

        Raises:
            NoGradient: a node that depends on a target has neither a rule nor a body.
        """
        active = self._active(nodes, targets)
        for node in nodes:
            if not any(value in active for value in node.reads):
                continue
            if self._is_differentiated(node, active) and not self._has_rule(node):
                step = Step(node, node.owner, [None] * len(node.outputs), active, self)
                raise step.error("there is no rule for the operator")

    def _has_rule(self, node: Node) -> bool:
        is_known = GRADIENTS.of(node) is not None or node.callee in self._functions
        return is_known or has_function_body(node)

    def _active(self, nodes: Sequence[Node], targets: Collection[Value]) -> set[Value]:
        """Return the floating-point values that depend on a target, and the targets."""
        stopped = self._stop_at
        active = {value for value in targets if value.name not in stopped}
        active -= self._constants
        for node in nodes:
            if node.label in stopped or not any(value in active for value in node.reads):
                continue
            for value in node.outputs:
                if value is None or value.name in stopped or value in self._constants:
                    continue
                if value.dtype is None or DataType(value.dtype).is_float:
                    active.add(value)
        return active

    def _is_differentiated(self, node: Node, active: Collection[Value]) -> bool:
        return any(value in active for value in node.outputs)

    def _of_node(
        self, graph: Graph, node: Node, grads: Sequence[Value | None], active: set[Value]
    ) -> Iterable[tuple[Value, Value]]:
        """Yield the contributions of one node to the gradients of what it reads."""
        step = Step(node, graph, grads, active, self)
        known = GRADIENTS.of(node)
        if known is None or known.is_expansion:
            yield from self._by_expansion(step)
            return
        found = _applied(known.rule, step)
        for value, grad in zip(step.values, found, strict=False):
            if grad is None or value not in active:
                continue
            yield value, (reduced_to(grad, step.of(value)) if known.broadcasts else grad).value
        for grad, value in zip(found[len(step.values) :], node.captured, strict=False):
            if grad is not None:
                yield value, grad.value

    def _by_expansion(self, step: Step) -> Iterable[tuple[Value, Value]]:
        """Differentiate what computes the same outputs: an expansion, or a function body."""
        node, graph = step.node, step.graph
        known = GRADIENTS.of(node)
        first = self._model.next_serial()
        if known is not None:
            made: Sequence[Value | None] = [
                None if each is None else each.value for each in _applied(known.rule, step)
            ]
        else:
            made = self._body_of(step)
        nodes = _nodes_since(first, made)
        seeds: dict[Value, Value] = {}
        for value, grad in zip(made, step.grads, strict=False):
            if value is not None and grad is not None:
                seeds[value] = grad.value
        wanted = [value for value in dict.fromkeys(node.reads) if value in step.wanted]
        yield from self(graph, nodes, seeds, wanted).items()

    def _body_of(self, step: Step) -> list[Value | None]:
        """Copy the body of a called function, or of an operator, and return its outputs."""
        node, graph = step.node, step.graph
        called = self._functions.get(node.callee)
        if called is not None:
            return self._copied(step, called)
        if not has_function_body(node):
            raise step.error("there is no rule for the operator")
        function = self._function_of(step)
        for inner in function.walk():
            own, there = function.opset(inner.domain), graph.opset(inner.domain)
            reason = why_not_at(inner, own, there) if there else None
            if reason is not None:
                raise step.error(f"its function body has {inner.op_type}, which {reason}")
        return self._copied(step, function)

    def _copied(self, step: Step, function: Function) -> list[Value | None]:
        """Copy the nodes of a function in the place of its call, and return its outputs."""
        node = step.node
        given = {proto.name: proto for proto in node.proto.attribute}
        stands: dict[Value, Value | None] = {
            value: node.input(at) for at, value in enumerate(function.inputs)
        }
        attributes, nodes = {**function.defaults, **given}, function.topological_order()
        step.graph.copy_nodes(nodes, stands, prefix=step.name, attributes=attributes)
        if function.id in self._functions:
            # An operand keeps its own name: that of a parameter says nothing of it.
            self.note_copies({value: stands[value] for value in stands if value.producer})
        return [stands[value] for value in function.outputs]

    def _function_of(self, step: Step) -> Function:
        """Return the function body of an operator as a function, one for all nodes alike.

        Raises:
            NoGradient: there is none for the dtypes of the node.
        """
        try:
            proto = function_body(step.node)
        except ModelError as error:
            raise step.error(str(error)) from error
        key = proto.SerializeToString(deterministic=True)
        if key not in self._bodies:
            proto.overload = str(len(self._bodies))
            self._bodies[key] = self._model.add(proto)
        return self._bodies[key]


def _applied(rule: GradientRule, step: Step) -> Sequence[Expr | None]:
    """Return what a rule returns; its errors name the node.

    Raises:
        NoGradient: the model's opset lacks an operator of the rule, or a rank or dtype is unknown.
    """
    try:
        return rule(step)
    except NoGradient:
        raise
    except NoEquivalentForm as error:
        raise step.error(f"{error}; convert_opset raises the opset") from error
    except ModelError as error:
        raise step.error(str(error)) from error


def _nodes_since(first: int, values: Iterable[Value | None]) -> Sequence[Node]:
    """Return the new nodes that compute some values, producers first."""
    found: set[Node] = set()
    pending = [value.producer for value in values if value is not None]
    while pending:
        node = pending.pop()
        if node is not None and node.id > first and node not in found:
            found.add(node)
            pending += [value.producer for value in node.reads]
    return sort_part(found)


def _total(
    graph: Graph, node: Node, parts: dict[Value, list[Value]], value: Value | None
) -> Value | None:
    """Return the sum of the gradients of an output, which is kept for other readers."""
    if value not in parts:
        return None
    total = _sum(graph, parts[value], node.label)
    parts[value] = [total]
    return total


def _sum(graph: Graph, parts: Sequence[Value], name: str) -> Value:
    if len(parts) == 1:
        return parts[0]
    build = graph.op.named("Add" if len(parts) == 2 else "Sum")
    total = build(*parts, name=f"grad/{name}")
    return Expr(graph, total, name).value
