"""Opset forms: attributes that became inputs, read and built through one table.

Passes and patterns speak the newest form of an operator. Reading gives them an old attribute as a
detached constant value; building writes what the model's opset has. Where no equivalent exists the
rewrite declines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx

from tiered.errors import ModelError
from tiered.graph.schema import AttributeReference, default_of, input_names, schema_of
from tiered.graph.tensor import Tensor
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    from tiered.graph.graph import Graph
    from tiered.graph.node import Node


class NoEquivalentForm(ModelError):
    """The model's opset cannot say what a rewrite wants to write; the rewrite declines."""


class Operand(NamedTuple):
    """An operand that was an attribute before opset `since`."""

    place: int
    attribute: str
    since: int
    # "int64": a list of integers; "int64 scalar"/"int64 [1]": one integer; "like x": a scalar of
    # the first input's dtype; "float": a float scalar or list.
    kind: str


def _axes(since: int) -> tuple[Operand, ...]:
    return (Operand(1, "axes", since, "int64"),)


_FLOAT_LIMIT = np.finfo(np.float32).max

FORMS: Mapping[str, tuple[Operand, ...]] = {
    "Clip": (Operand(1, "min", 11, "like x"), Operand(2, "max", 11, "like x")),
    "Dropout": (Operand(1, "ratio", 12, "float"),),
    "Pad": (Operand(1, "pads", 11, "int64"), Operand(2, "value", 11, "like x")),
    "Slice": (
        Operand(1, "starts", 10, "int64"),
        Operand(2, "ends", 10, "int64"),
        Operand(3, "axes", 10, "int64"),
    ),
    "Split": (Operand(1, "split", 13, "int64"),),
    "Squeeze": _axes(13),
    "TopK": (Operand(1, "k", 10, "int64 [1]"),),
    "Unsqueeze": _axes(13),
    "Upsample": (Operand(1, "scales", 9, "float"),),
    "ReduceSum": _axes(13),
    **{
        f"Reduce{kind}": _axes(18)
        for kind in (
            "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"
        )
    },
}  # fmt: skip
"""Operators of the default domain whose operands moved, with the opset that moved them."""


def _moved(op_type: str, domain: str, version: int) -> tuple[Operand, ...]:
    """Return the operands that are still attributes at an opset version."""
    if domain:
        return ()
    return tuple(form for form in FORMS.get(op_type, ()) if version < form.since)


def moved_attributes(node: Node) -> frozenset[str]:
    """Return the attributes of the node that are operands in its newest form."""
    moved = _moved(node.op_type, node.domain, node.owner.opset(node.domain))
    return frozenset(form.attribute for form in moved)


def operand_index(node: Node, name: str) -> int:
    """Return the place of an operand in the newest form.

    Raises:
        ModelError: the operator has no operand of this name.
    """
    schema = schema_of(node.op_type, node.domain)
    names = input_names(schema) if schema is not None else ()
    if name not in names:
        raise ModelError(f"{node.op_type} has no operand {name!r}; it has {', '.join(names)}")
    return names.index(name)


def operands_of(node: Node) -> Sequence[Value | None]:
    """Return the operands in the newest form."""
    if node.op_type not in FORMS:
        return node._inputs
    moved = _moved(node.op_type, node.domain, node.owner.opset(node.domain))
    if not moved:
        return node._inputs
    operands: list[Value | None] = list(node._inputs)
    for form in moved:
        if node.has_attr(form.attribute):
            operands += [None] * (form.place + 1 - len(operands))
            operands[form.place] = _detached(node, form)
    return operands


def _detached(node: Node, form: Operand) -> Value:
    raw = node.attr(form.attribute)
    if isinstance(raw, AttributeReference):
        # The call of the function decides it: there, but no constant.
        return Value(0, None, form.attribute)
    return detached(_READERS[form.kind](raw, node), form.attribute)


def detached(array: np.ndarray[Any, Any], name: str = "const") -> Value:
    """Return a constant value of no graph; it enters one where it is written as an operand."""
    value = Value(0, None, name)
    value._type = NOT_INFERRED
    value._tensor = Tensor.of(array)
    return value


def _like_x(raw: Any, node: Node) -> np.ndarray[Any, Any]:
    data = node.input(0)
    dtype = None if data is None else data.dtype
    numpy_dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype or onnx.TensorProto.FLOAT)
    return np.array(raw, numpy_dtype)


_READERS: Mapping[str, Callable[[Any, Node], np.ndarray[Any, Any]]] = {
    "int64": lambda raw, _: np.array(raw, np.int64),
    "int64 [1]": lambda raw, _: np.array([raw], np.int64),
    "float": lambda raw, _: np.array(raw, np.float32),
    "like x": _like_x,
}


def to_model_form(
    graph: Graph,
    op_type: str,
    domain: str,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Any],
) -> tuple[list[Value | None], dict[str, Any]]:
    """Return inputs and attributes of an operator as the graph's opset writes them.

    Raises:
        NoEquivalentForm: the opset has no such operator, attribute or operand.
    """
    version = graph.opset(domain)
    schema = schema_of(op_type, domain, version) if version else None
    newest = schema_of(op_type, domain)
    if schema is None and newest is not None:
        raise NoEquivalentForm(f"opset {version} of domain {domain!r} has no {op_type}")
    operands, written = list(inputs), dict(attributes)
    for form in _moved(op_type, domain, version):
        if form.place < len(operands):
            operand = operands.pop(form.place) if form.place == len(operands) - 1 else None
            if operand is None and form.place < len(operands):
                operand, operands[form.place] = operands[form.place], None
            if operand is not None:
                written[form.attribute] = _as_attribute(op_type, form, operand)
    while operands and operands[-1] is None:
        operands.pop()
    if schema is not None:
        if len(operands) > schema.max_input:
            raise NoEquivalentForm(f"{op_type} has {schema.max_input} operands at opset {version}")
        _check_attributes(op_type, version, schema, newest or schema, written)
    attached = [_attached(graph, value) for value in operands]
    return attached, written


def _as_attribute(op_type: str, form: Operand, operand: Value) -> Any:
    array = operand.const if operand.graph is not None else operand.default
    if isinstance(array, Tensor):
        array = array.numpy()
    if array is None:
        raise NoEquivalentForm(
            f"{op_type} needs a constant {form.attribute} before opset {form.since}"
        )
    if form.kind in ("int64", "float"):
        return array.ravel().tolist() if array.ndim else array.item()
    return array.item()


def _check_attributes(
    op_type: str, version: int, schema: Any, newest: Any, written: dict[str, Any]
) -> None:
    for name, value in list(written.items()):
        if value is None or (name in schema.attributes and value == default_of(schema, name)):
            # What is not written has its default, in fewer bytes.
            del written[name]
        elif name not in schema.attributes:
            if value != default_of(newest, name):
                raise NoEquivalentForm(f"{op_type} has no attribute {name!r} at opset {version}")
            del written[name]


def _attached(graph: Graph, value: Value | None) -> Value | None:
    """Return the value itself, or for a detached constant a constant of the graph."""
    if value is None or value.graph is not None or value.default is None:
        return value
    return graph.constant(value.default, value.name)
