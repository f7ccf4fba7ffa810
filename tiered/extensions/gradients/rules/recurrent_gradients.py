"""RNN, GRU and LSTM as a Scan of their gates.

Source: the equations of ONNX RNN-22, GRU-22 and LSTM-22 with their default activations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, expansion
from tiered.graph import DataType, TensorType

_DEFAULTS: Final[Mapping[str, tuple[str, ...]]] = {
    "GRU": ("Sigmoid", "Tanh"),
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "RNN": ("Tanh",),
}


class Direction:
    """The operands of one direction of a recurrent node.

    Attributes:
        step: the node.
        hidden: the size of the state.
    """

    def __init__(self, step: Step, at: int) -> None:
        self.step, self._at = step, at
        self.hidden = _hidden_size(step)

    def own(self, place: int) -> Expr:
        """Return the part of an operand that belongs to the direction."""
        operand = self.step.operand(place)
        return operand.call("Slice", operand, [self._at], [self._at + 1], [0]).squeeze([0])

    def initial(self, place: int) -> Expr:
        """Return an initial state, [batch, hidden]."""
        x = self.step.x
        if not self.step.has(place):
            batch = x.dim(0 if _is_batch_first(self.step) else 1)
            return x.call("Concat", batch, x.integers([self.hidden]), axis=0).full(0, x.dtype)
        if not _is_batch_first(self.step):
            return self.own(place)
        state = self.step.operand(place).transpose([1, 0, 2])
        return state.call("Slice", state, [self._at], [self._at + 1], [0]).squeeze([0])

    def gate(self, whole: Expr, at: int, axis: int = 0) -> Expr:
        """Return the part of one gate."""
        start = at * self.hidden
        return whole.call("Slice", whole, [start], [start + self.hidden], [axis])

    def bias(self, at: int) -> Expr | None:
        """Return one of the biases, those of the input first; None if there are none."""
        return self.gate(self.own(3), at) if self.step.has(3) else None


Cell = Callable[[Direction, Expr, Sequence[Expr]], Sequence[Expr]]
"""Returns the states after an iteration, from the product of its input and the states before."""


def _plus(x: Expr, bias: Expr | None) -> Expr:
    return x if bias is None else x + bias


def _rnn(direction: Direction, product: Expr, states: Sequence[Expr]) -> Sequence[Expr]:
    """h' = tanh(x W^T + h R^T + b)"""
    (h,) = states
    total = _plus(product + h @ direction.own(2).transpose([1, 0]), direction.bias(1))
    return (total.call("Tanh", total),)


def _gru(direction: Direction, product: Expr, states: Sequence[Expr]) -> Sequence[Expr]:
    """z, r = the sigmoids of their gates; n = tanh(...); h' = (1 - z) n + z h"""
    (h,) = states
    recurrence = direction.own(2)

    def recurrent(state: Expr, gate: int) -> Expr:
        product = state @ direction.gate(recurrence, gate).transpose([1, 0])
        return _plus(product, direction.bias(3 + gate))

    def sigmoid(gate: int) -> Expr:
        total = direction.gate(product, gate, 1) + recurrent(h, gate)
        return total.call("Sigmoid", total)

    update, reset = sigmoid(0), sigmoid(1)
    if int(direction.step.node.attr("linear_before_reset", 0)):
        from_state = reset * recurrent(h, 2)
    else:
        from_state = recurrent(reset * h, 2)
    total = direction.gate(product, 2, 1) + from_state
    new = total.call("Tanh", total)
    return ((1 - update) * new + update * h,)


def _lstm(direction: Direction, product: Expr, states: Sequence[Expr]) -> Sequence[Expr]:
    """c' = f c + i tanh(...); h' = o tanh(c'), with peepholes from c to i and f, from c' to o"""
    h, c = states
    total = product + h @ direction.own(2).transpose([1, 0])

    def gate(at: int) -> Expr:
        return _plus(direction.gate(total, at, 1), direction.bias(4 + at))

    def peephole(at: int, cell: Expr) -> Expr | None:
        return cell * direction.gate(direction.own(7), at) if direction.step.has(7) else None

    def sigmoid(x: Expr) -> Expr:
        return x.call("Sigmoid", x)

    entry, forget = (sigmoid(_plus(gate(at), peephole(own, c))) for at, own in ((0, 0), (2, 2)))
    new = gate(3)
    cell = forget * c + entry * new.call("Tanh", new)
    output = sigmoid(_plus(gate(1), peephole(1, cell)))
    return output * cell.call("Tanh", cell), cell


_CELLS: Final[Mapping[str, tuple[Cell, int, int]]] = {
    "GRU": (_gru, 3, 1),
    "LSTM": (_lstm, 4, 2),
    "RNN": (_rnn, 1, 1),
}
"""The cell of each operator, the number of its gates, and that of its states."""


@expansion("RNN", "GRU", "LSTM")
def recurrent(step: Step) -> Sequence[Expr | None]:
    """Y, Y_h and Y_c, by one Scan for each direction"""
    _check(step)
    kind = str(step.node.attr("direction"))
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[kind]
    scans = [_scanned(Direction(step, at), way) for at, way in enumerate(ways)]
    sequences = [rows.unsqueeze([1]) for rows, _ in scans]
    finals = zip(*(states for _, states in scans), strict=True)
    joined = [_joined(sequences, 1)]
    joined += [_joined([state.unsqueeze([0]) for state in states], 0) for states in finals]
    if _is_batch_first(step):
        rows, *last = joined
        joined = [rows.transpose([2, 0, 1, 3]), *(state.transpose([1, 0, 2]) for state in last)]
    return joined[: len(step.outputs)]


def _is_batch_first(step: Step) -> bool:
    """Return whether operands and outputs have the batch as their first axis."""
    return bool(step.node.attr("layout", 0))


def _joined(parts: Sequence[Expr], axis: int) -> Expr:
    return parts[0] if len(parts) == 1 else parts[0].call("Concat", *parts, axis=axis)


def _hidden_size(step: Step) -> int:
    """Return the size of the state.

    Raises:
        NoGradient: it is unknown.
    """
    size = step.node.attr("hidden_size") or step.operand(2).value.dim(-1)
    if not isinstance(size, int):
        raise step.error("its hidden_size is unknown")
    return size


def _check(step: Step) -> None:
    """Raise for forms that have no rule.

    Raises:
        NoGradient: for a clip, coupled gates or other activations.
    """
    node = step.node
    for name in ("clip", "input_forget"):
        if node.attr(name, 0):
            raise step.error(f"{name} has no rule")
    activations, plain = tuple(node.attr("activations", ())), _DEFAULTS[node.op_type]
    if activations and activations != plain * (len(activations) // len(plain)):
        raise step.error(f"its activations are {list(activations)}; expected {list(plain)}")


def _is_inside(step: Step, x: Expr) -> Expr:
    """Return whether each iteration is inside of a sequence, [length, batch, 1].

    Beyond the end of a sequence its states stay, and its output is 0.
    """
    number = x.call("Range", np.int64(0), x.dim(0).squeeze([0]), np.int64(1)).unsqueeze([1])
    return number.less(step.operand(4).cast(DataType.INT64)).unsqueeze([2])


def _scanned(direction: Direction, is_reversed: bool) -> tuple[Expr, list[Expr]]:
    """Return the hidden states of all iterations, [length, batch, hidden], and the last states."""
    step, graph, x = direction.step, direction.step.graph, direction.step.x
    x = x.transpose([1, 0, 2]) if _is_batch_first(step) else x
    cell, gates, count = _CELLS[step.node.op_type]
    products = x @ direction.own(1).transpose([1, 0])
    if step.has(3):
        biases = direction.own(3)
        products = products + biases.call("Slice", biases, [0], [gates * direction.hidden], [0])
    starts = [direction.initial(5 + at).value for at in range(count)]
    scanned = [products.value, *([_is_inside(step, x).value] if step.has(4) else [])]
    attributes = {
        "num_scan_inputs": len(scanned),
        "scan_input_directions": [int(is_reversed)] * len(scanned),
        "scan_output_directions": [int(is_reversed)],
    }
    made = graph.add_node(
        "Scan", [*starts, *scanned], count + 1, attributes, name=step.name, bodies=["body"]
    )
    body, names = made.bodies[0], graph.model.names
    body.skeleton.name = step.name

    def entered(name: str, width: int) -> Expr:
        kind = TensorType(x.dtype, (x.value.dim(1), width))
        return Expr(body, body.add_input(names.fresh(name), kind), step.name)

    states = [entered("state", direction.hidden) for _ in range(count)]
    product = entered("gates", gates * direction.hidden)
    after, row = cell(direction, product, states), None
    if step.has(4):
        kind = TensorType(DataType.BOOL, (x.value.dim(1), 1))
        inside = Expr(body, body.add_input(names.fresh("inside"), kind), step.name)
        row = inside.select(after[0], 0.0)
        pairs = zip(after, states, strict=True)
        after = [inside.select(new, old) for new, old in pairs]
    for state in (*after, after[0] if row is None else row):
        body.add_output(state.call("Identity", state).value)
    outputs = [step.of(value) for value in made.outputs if value is not None]
    return outputs[-1], outputs[:-1]
