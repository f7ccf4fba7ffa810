"""Gradients of If, Loop and Scan.

The backward pass computes the values of a body again in a body of its own. Loops record the state
at the start of each iteration as outputs of the forward loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule
from tiered.graph import DataType, Graph, Model, Node, TensorType, Value
from tiered.graph.core.types import Shape
from tiered.graph.io.export import export_model

_BEFORE_FIRST: Final = int(np.iinfo(np.int64).min)
"""The end of a Slice that goes backwards through all elements."""

_STEPS_SINCE: Final = 10
"""The opset in which Slice got its steps."""


@gradient_rule("If")
def if_(step: Step) -> Sequence[Expr | None]:
    """The gradient of a captured value is an If of its gradients in both branches"""
    node, graph = step.node, step.graph
    wanted = [value for value in node.captured if value in step.wanted]
    made = graph.add_node(
        "If", [step.x.value], len(wanted), name=step.name,
        bodies=[body.attribute for body in node.bodies],
    )  # fmt: skip
    grads = [None if grad is None else grad.value for grad in step.grads]
    for source, body in zip(node.bodies, made.bodies, strict=True):
        body.skeleton.name = f"{step.name}/{body.attribute}"
        copy = _copied(step, source, body, {})
        seeds = _seeds(copy.outputs, grads)
        found = step.differentiate(body, copy.nodes, seeds, wanted)
        for value in wanted:
            here = Expr(body, value, step.name)
            grad = found.get(value)
            _return(body, here.zeros() if grad is None else here.of(grad))
        body.prune(body.nodes)
    by_value = dict(zip(wanted, made.outputs, strict=True))
    return [*(None for _ in step.values), *_of_captured(step, by_value)]


@gradient_rule("Loop")
def loop(step: Step) -> Sequence[Expr | None]:
    """The same iterations in reverse order, from the recorded states"""
    states = step.node.bodies[0].inputs[2:]
    return _reverse_iterations(step, _Iterated(step, states, scans=(), first=2))


@gradient_rule("Scan")
def scan(step: Step) -> Sequence[Expr | None]:
    """The same iterations in reverse order, from the recorded states"""
    node, body = step.node, step.node.bodies[0]
    if node.version == 8:
        raise step.error("Scan-8 has no rule; convert_opset raises the opset")
    count = len(body.inputs) - int(node.attr("num_scan_inputs"))
    scans = _scanned(step, body.inputs[count:], count)
    return _reverse_iterations(step, _Iterated(step, body.inputs[:count], scans, first=0))


class _ScanInput(NamedTuple):
    """An operand of a Scan that a body reads slice by slice."""

    place: int
    inner: Value
    axis: int
    is_reversed: bool


def _scanned(step: Step, inners: Sequence[Value], first: int) -> list[_ScanInput]:
    node = step.node
    axes = node.attr("scan_input_axes") or (0,) * len(inners)
    directions = node.attr("scan_input_directions") or (0,) * len(inners)
    return [
        _ScanInput(first + at, inner, _from_front(step, first + at, axis), bool(direction))
        for at, (inner, axis, direction) in enumerate(zip(inners, axes, directions, strict=True))
    ]


def _from_front(step: Step, place: int, axis: int) -> int:
    return axis if axis >= 0 else axis + step.operand(place).rank


class _Iterated:
    """A Loop or Scan that records its states, and the number of its iterations.

    Args:
        step: the node.
        states: the inputs of the body that are loop-carried.
        scans: the operands that are read slice by slice.
        first: the place of the first state among the operands.
    """

    def __init__(
        self, step: Step, states: Sequence[Value], scans: Sequence[_ScanInput], first: int
    ) -> None:
        self.node, self.body = step.node, step.node.bodies[0]
        self.states, self.scans, self.first = states, scans, first
        self._check_states(step)
        body, before = self.body, len(step.outputs)
        # The outputs of a Loop's body begin with its condition.
        self.shift = 0 if scans or step.node.op_type == "Scan" else 1
        recorded = [*states] if self.shift == 0 else [body.inputs[0], *states]
        for value in recorded:
            _return(body, Expr(body, value, f"{step.node.label}/recorded"))
        missing = len(body.outputs) - self.shift - len(recorded) - before
        fresh = [step.graph.new_value(f"{step.node.label}/{value.name}") for value in recorded]
        step.graph.set_outputs(self.node, [*self.node.outputs, *([None] * missing), *fresh])
        for name in ("scan_output_axes", "scan_output_directions"):
            written = self.node.attr(name, ())
            if written:
                step.graph.set_attribute(self.node, name, [*written, *(0 for _ in recorded)])
        made = [value for value in self.node.outputs[-len(recorded) :] if value] if recorded else []
        self.records = made[1:] if self.shift else made
        for at, record in enumerate(self.records):
            # Recorded states have one shape, so it is that of the first.
            first_type = step.operand(self.first + at).value.type
            if record.rank is None and isinstance(first_type, TensorType) and first_type.shape:
                shape = (None, *first_type.shape)
                step.graph.set_type(record, TensorType(first_type.dtype, shape))
        if self.shift:
            self.count = step.of(made[0]).dim(0).squeeze([0])
        else:
            self.count = step.operand(scans[0].place).dim(scans[0].axis).squeeze([0])

    def _check_states(self, step: Step) -> None:
        """Raise if a state may change its shape: its values cannot be recorded as one tensor.

        Raises:
            NoGradient: it may, or it is no tensor.
        """
        for state in self.states:
            if state.type is not None and not isinstance(state.type, TensorType):
                raise step.error(f"state {state.name!r} is no tensor, but {state.type}")
        shapes = _shapes_of_states(self.node, self.first, len(self.states))
        for state, (before, after) in zip(self.states, shapes, strict=True):
            if before is None or before != after:
                kinds = ["unknown" if shape is None else str([*shape]) for shape in (before, after)]
                raise step.error(
                    f"an iteration may change the shape of state {state.name!r}: {kinds[0]} "
                    f"before it, {kinds[1]} after it"
                )


def _reverse_iterations(step: Step, forward: _Iterated) -> Sequence[Expr | None]:
    """Add a Loop over the iterations from the last to the first, and return the gradients."""
    node, graph = step.node, step.graph
    # The initial states have types; the inputs of a body need not.
    initial = [step.operand(forward.first + at) for at in range(len(forward.states))]
    carried = [at for at, state in enumerate(initial) if state.value.is_float]
    captured = [value for value in node.captured if value in step.wanted]
    scanned = [each for each in forward.scans if step.wants(each.place)]
    grads = [None if grad is None else grad.value for grad in step.grads]
    grads += [None] * (len(node.outputs) - len(grads))
    starts: list[Value] = []
    for at in carried:
        grad = grads[at]
        starts.append(initial[at].zeros().value if grad is None else grad)
    starts += [step.of(value).zeros().value for value in captured]
    # The condition may be absent, but onnx.reference would run no iteration then.
    goes = graph.constant(np.array(True), f"{step.name}/true")
    made = graph.add_node(
        "Loop", [forward.count.value, goes, *starts], len(starts) + len(scanned),
        name=step.name, bodies=["body"],
    )  # fmt: skip
    body = made.bodies[0]
    names = graph.model.names
    body.skeleton.name = step.name
    number = body.add_input(names.fresh("iteration"), TensorType(DataType.INT64, ()))
    goes_on = body.add_input(names.fresh("goes_on"), TensorType(DataType.BOOL, ()))
    sums = [body.add_input(names.fresh(f"{step.name}/sum"), value.type) for value in starts]
    here = Expr(body, number, step.name)
    index = here.of(forward.count.value) - 1 - here
    last = here.of(forward.count.value) - 1

    stands: dict[Value, Value] = {}
    for state, record in zip(forward.states, forward.records, strict=True):
        stands[state] = here.call("Gather", record, index, axis=0).value
    for each in forward.scans:
        at_slice = last - index if each.is_reversed else index
        source = step.operand(each.place).value
        stands[each.inner] = here.call("Gather", source, at_slice, axis=each.axis).value
    if node.op_type == "Loop":
        stands[forward.body.inputs[0]] = index.value
        stands[forward.body.inputs[1]] = here.of(
            body.constant(np.array(True), f"{step.name}/true")
        ).value
    sources = [stands[value] for value in forward.states]
    slices = [stands[each.inner] for each in scanned]
    copy = _copied(step, forward.body, body, stands)
    results = copy.outputs[forward.shift :]
    inner: list[Value | None] = [None] * len(results)
    for at, total in zip(carried, sums, strict=False):
        inner[at] = total
    directions, axes = _output_order(node, len(forward.states), len(results))
    for at in range(len(forward.states), min(len(results), len(grads))):
        grad = grads[at]
        if grad is not None:
            place = last - index if directions[at] else index
            inner[at] = here.call("Gather", grad, place, axis=axes[at]).value
    targets = [*(sources[at] for at in carried), *slices, *captured]
    found = step.differentiate(body, copy.nodes, _seeds(results, inner), targets)

    _return(body, here.of(goes_on))
    for at in carried:
        grad = found.get(sources[at])
        _return(body, here.of(sources[at]).zeros() if grad is None else here.of(grad))
    for value, total in zip(captured, sums[len(carried) :], strict=True):
        grad = found.get(value)
        _return(body, here.of(total) if grad is None else here.of(total) + here.of(grad))
    for value in slices:
        grad = found.get(value)
        _return(body, here.of(value).zeros() if grad is None else here.of(grad))
    body.prune(body.nodes)
    return _collected(step, forward, made, carried, captured, scanned)


def _collected(
    step: Step, forward: _Iterated, made: Node, carried: Sequence[int],
    captured: Sequence[Value], scanned: Sequence[_ScanInput],
) -> list[Expr | None]:  # fmt: skip
    """Return the gradients of the operands and of the captured values, from the new Loop."""
    outputs = [value for value in made.outputs if value is not None]
    result: list[Expr | None] = [None] * len(step.values)
    for at, value in zip(carried, outputs, strict=False):
        result[forward.first + at] = step.of(value)
    rows = outputs[len(carried) + len(captured) :]
    for each, value in zip(scanned, rows, strict=True):
        grad = step.of(value)
        if not each.is_reversed:
            grad = _reversed(grad)
        if each.axis:
            rank = step.operand(each.place).rank
            grad = grad.transpose([*range(1, each.axis + 1), 0, *range(each.axis + 1, rank)])
        result[each.place] = grad
    by_value = dict(zip(captured, outputs[len(carried) :], strict=False))
    return [*result, *_of_captured(step, by_value)]


def _reversed(rows: Expr) -> Expr:
    """Return the rows from the last to the first."""
    if rows.graph.opset() >= _STEPS_SINCE:
        return rows.call("Slice", rows, [-1], [_BEFORE_FIRST], [0], [-1])
    ones = rows.dim(0).full(1, DataType.INT64)
    places = ones.call("NonZero", ones).reshape([-1])
    return rows.call("Gather", rows, rows.dim(0) - 1 - places, axis=0)


def _output_order(node: Node, states: int, count: int) -> tuple[list[bool], list[int]]:
    """Return the direction and the axis of each output; those of states do not count."""
    directions, axes = [False] * count, [0] * count
    for at, direction in enumerate(node.attr("scan_output_directions", ())):
        directions[states + at] = bool(direction)
    for at, axis in enumerate(node.attr("scan_output_axes", ())):
        axes[states + at] = int(axis)
    return directions, axes


class _Copy(NamedTuple):
    """The nodes of a body in another body, and its outputs there."""

    nodes: list[Node]
    outputs: list[Value]


def _copied(step: Step, source: Graph, body: Graph, known: Mapping[Value, Value]) -> _Copy:
    """Copy the contents of one body into another.

    Args:
        step: the node of the body.
        source: the body of the forward pass.
        body: the body that gets the copies.
        known: the values there for the inputs of the source.
    """
    stands: dict[Value, Value | None] = dict(known)
    for value in source.initializers:
        assert value.default is not None
        name = body.model.names.fresh(f"{step.name}/{value.name}")
        stands[value] = body.add_constant(value.default, name)
    nodes = body.copy_nodes(source.topological_order(), stands, prefix=step.name)
    step.differentiate.note_copies(stands)
    outputs = []
    for value in source.outputs:
        found = stands.get(value, value)
        assert found is not None
        outputs.append(found)
    return _Copy(nodes, outputs)


def _seeds(outputs: Sequence[Value], grads: Sequence[Value | None]) -> dict[Value, Value]:
    """Return the gradient of each output; an output that is there twice gets the sum."""
    seeds: dict[Value, Value] = {}
    for value, grad in zip(outputs, grads, strict=False):
        if grad is None:
            continue
        known = seeds.get(value)
        if known is None:
            seeds[value] = grad
        else:
            graph = value.owner
            seeds[value] = (Expr(graph, known, "grad") + Expr(graph, grad, "grad")).value
    return seeds


def _return(body: Graph, value: Expr) -> None:
    """Append an output to a body, as a value that a node of the body computes."""
    body.add_output(value.call("Identity", value).value)


def _of_captured(step: Step, grads: Mapping[Value, Value | None]) -> list[Expr | None]:
    """Return the gradients of the captured values in their order."""
    found = [grads.get(value) for value in step.node.captured]
    return [None if grad is None else step.of(grad) for grad in found]


def _shapes_of_states(
    node: Node, first: int, count: int
) -> list[tuple[Shape | None, Shape | None]]:
    """Return the shapes of the states before an iteration, and after it, of a Loop or Scan.

    Before it, each has the shape of its initial value; if it has it afterwards too, no iteration
    changes it. What follows from this assumption holds nowhere else: it is inferred in a copy.
    """
    model = Model.from_proto(export_model(node.owner.model, is_bare=True))
    model.refresh_types()
    twin = _same_node(model, node)
    body = twin.bodies[0]
    before: list[Shape | None] = []
    for at in range(first, first + count):
        initial, shape = twin.given(at).type, None
        if isinstance(initial, TensorType) and initial.shape is not None:
            shape = tuple(model.dims.invent() if dim is None else dim for dim in initial.shape)
            body.set_type(body.inputs[at], TensorType(initial.dtype, shape))
        before.append(shape)
    model.refresh_types()
    results = body.outputs[1:] if node.op_type == "Loop" else body.outputs
    return [(shape, value.shape) for shape, value in zip(before, results, strict=False)]


def _same_node(model: Model, node: Node) -> Node:
    """Return the node of a copy of a model that is a node of the model."""
    graph, owner = model.main, node.owner.parent_node
    if owner is not None:
        bodies = {body.attribute: body for body in _same_node(model, owner).bodies}
        graph = bodies[node.owner.attribute]
    found = next(graph.values[value.name].producer for value in node.outputs if value is not None)
    assert found is not None
    return found
