"""Values as expressions of operators, and what a pass makes of a model as such a text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.recorded import assert_recorded
from tiered import Model, PassContext
from tiered.graph import Node, Tensor, Value
from tiered.pipeline.text import parse_elements
from tiered.support.errors import TieredError
from tiered.testing import parse

_MOST = 16
"""The largest number of elements of a constant that is written down."""


class Writer:
    """Writes values as calls of operators: a node that is read twice once, then its number.

    Args:
        first: the serial number of the last node whose outputs are written as names.
    """

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._numbers: dict[Node, int] = {}

    def __call__(self, value: Value | None) -> str:
        if value is None:
            return "-"
        if value.const is not None:
            return _number(value.const) if value.const.size <= _MOST else f"{value.type}"
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


def _number(each: Any) -> str:
    if isinstance(each, Tensor):
        each = each.numpy()
    return str(each.tolist() if isinstance(each, np.ndarray) else each).replace(" ", "")


def outcome(header: str, text: str) -> str:
    """Return the outputs of a model after a pass, or why the pass does nothing.

    Args:
        header: the pass with its options, the opset, and the target or `-`.
        text: the model; after it, ` pins a b` names values that a quantization annotation reads.
    """
    text_of_pass, opset, target = header.rsplit(" ", 2)
    (pass_,) = parse_elements(text_of_pass)
    text, _, pinned = text.partition(" pins ")
    proto = parse(text, opset=int(opset))
    for name in pinned.split():
        annotation = proto.graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=name)
    model = Model.from_proto(proto)
    model.refresh_types()
    mark, before = model.mark(), _interface(model)
    context = PassContext.isolated(opt_level=4, backend=None if target == "-" else target)
    try:
        pass_.apply(model, context)
    except TieredError as error:
        return f"error: {error}"
    if not model.changed_since(mark):
        reasons = dict.fromkeys(remark.reason for remark in context.remarks)
        return f"stays: {'; '.join(reasons)}" if reasons else "stays"
    write, after = Writer(), _interface(model)
    made = "; ".join(f"{value.name} = {write(value)}" for value in model.main.outputs)
    is_same = before == after or not pass_.info.changes_interface
    return made if is_same else f"{after}: {made}"


def _interface(model: Model) -> str:
    """Return the inputs and outputs of a model with their types."""
    inputs, outputs = (
        ", ".join(f"{value.type} {value.name}" for value in values)
        for values in (model.main.inputs, model.main.outputs)
    )
    return f"({inputs}) => ({outputs})"


def check_corners(path: Path) -> None:
    """Hold what passes do in corners against a file.

    A section begins with `= pass opset target` and a model. After it, a line `old ==> new` changes
    one text of the model, or several with ` && ` between, and the next one is the outcome.
    """
    assert_recorded(path, {"=": _outcomes})


def _outcomes(header: str, below: list[str]) -> Iterator[str]:
    base, *lines = below
    changes = ""
    yield base
    for line in lines:
        is_outcome = line.startswith("  ")
        changes = changes if is_outcome else line
        yield f"  {outcome(header, changed(base, changes))}" if is_outcome else line


def changed(text: str, changes: str) -> str:
    """Return a text with some changes of `check_corners`; `-` stands for none."""
    if changes == "-":
        return text
    for change in changes.split(" && "):
        old, _, new = change.partition(" ==>")
        assert old in text, change
        text = text.replace(old, new.removeprefix(" "))
    return text
