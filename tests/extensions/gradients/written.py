"""The new nodes of a gradient as one expression, for tests that hold it as a whole."""

from typing import Any

import numpy as np

from tests.small import parsed
from tiered import add_gradients
from tiered.extensions.gradients import NoGradient
from tiered.graph import Node, Tensor, Value


class _Writer:
    """Writes values as calls of operators: a node that is read twice once, then its number."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._numbers: dict[Node, int] = {}

    def __call__(self, value: Value | None) -> str:
        if value is None:
            return "-"
        if value.const is not None:
            return _number(value.const)
        node = value.producer
        if node is None or node.id <= self._first:
            return value.name
        which = f".{node.outputs.index(value)}" if len(node.outputs) > 1 else ""
        if node in self._numbers:
            return f"#{self._numbers[node]}{which}"
        mark = ""
        if sum(len(each.users) for each in node.outputs if each) > 1:
            self._numbers[node] = len(self._numbers)
            mark = f"#{self._numbers[node]}="
        attributes = ", ".join(f"{key}={_number(each)}" for key, each in node.attributes.items())
        bodies = "".join(
            f" {{{', '.join(each.name for each in body.inputs)} -> "
            f"{', '.join(map(self, body.outputs))}}}"
            for body in node.bodies
        )
        called = f"{node.op_type}{f'<{attributes}>' if attributes else ''}"
        return f"{mark}{called}({', '.join(map(self, node.inputs))}){bodies}{which}"


def written(value: Value | None, first: int) -> str:
    """Return a value as calls of operators; what older nodes compute is a name.

    Args:
        value: the value.
        first: the serial number before the new nodes.
    """
    return _Writer(first)(value)


def adjoints(text: str, opset: int = 21) -> list[str]:
    """Return the gradients of the float inputs of a model, a line each, or why there is none."""
    model = parsed(text, opset=opset)
    graph = model.main
    of, targets = (
        [value for value in values if value.is_float] for values in (graph.outputs, graph.inputs)
    )
    first = model.peek_serial() - 1
    try:
        found = add_gradients(model, of, targets, seed="input").outputs
    except NoGradient as error:
        return [str(error)]
    made = [value.producer.inputs[0] for value in found if value.producer]
    write = _Writer(first)
    return [f"{value.name}: {write(grad)}" for value, grad in zip(targets, made, strict=True)]


def _number(each: Any) -> str:
    if isinstance(each, Tensor):
        each = each.numpy()
    return str(each.tolist() if isinstance(each, np.ndarray) else each).replace(" ", "")
