"""Forms of operators, and the table rows that convert one opset's form to another's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.schema import AttributeReference
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.queries.op_traits import VIEWS
from tiered.support.errors import ModelError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph.core.types import Shape


class NoEquivalentForm(ModelError):
    """The target form cannot express the node: a rewrite declines, a pattern does not match."""


class OperatorForm:
    """An operator with its operands and attributes during the conversion between opset forms.

    Attributes:
        op_type: the operator, of the default domain.
        version: the opset of the graph; in a conversion the older of the two.
        target: the opset that a conversion goes to; otherwise `version`.
        operands: the inputs; None for an absent one.
        attributes: the explicit attributes.
        n_outputs: the number of outputs; None while unknown.
        changed: the explicit attributes with another value than the node has.
    """

    __slots__ = ("attributes", "changed", "n_outputs", "op_type", "operands", "target", "version")

    def __init__(
        self,
        op_type: str,
        version: int,
        operands: list[Value | None],
        attributes: dict[str, Any],
        n_outputs: int | None = None,
    ) -> None:
        self.op_type = op_type
        self.version = self.target = version
        self.operands = operands
        self.attributes = attributes
        self.n_outputs = n_outputs
        self.changed: frozenset[str] = frozenset()

    def operand(self, place: int) -> Value | None:
        return self.operands[place] if place < len(self.operands) else None

    def set_operand(self, place: int, value: Value | None) -> None:
        self.operands += [None] * (place + 1 - len(self.operands))
        self.operands[place] = value
        while self.operands and self.operands[-1] is None:
            self.operands.pop()

    def numbers(self, place: int) -> np.ndarray[Any, Any] | None:
        """Return the contents of an operand that is known; see `contents`."""
        value = self.operand(place)
        return None if value is None else contents(value)

    @property
    def dtype(self) -> int | None:
        """Return the dtype of the first operand."""
        value = self.operand(0)
        return None if value is None else value.dtype

    @property
    def shape(self) -> Shape | None:
        """Return the shape of the first operand."""
        value = self.operand(0)
        return None if value is None else value.shape

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    def declines(self, reason: str) -> NoEquivalentForm:
        return NoEquivalentForm(f"{self.op_type} {reason} (opset {self.version})")


def contents(value: Value) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a constant, in a graph or detached; None for other values.

    Integers that nodes compute of constants and of known sizes are known, too, and floats that
    nodes move or cast.
    """
    if value.graph is None:
        return None if value.default is None or value.default.is_sparse else value.default.numpy()
    if value.tensor is not None:
        return value.const
    found = _computed(value)
    return _moved(value, _DEPTH) if found is None else found


def _computed(value: Value) -> np.ndarray[Any, Any] | None:
    elements = value.elements
    if elements is None or value.dtype is None:
        return None
    if not all(isinstance(element, int) for element in elements.ravel().tolist()):
        return None
    return elements.astype(DataType(value.dtype).numpy)


_DEPTH: Final = 8
_MOST: Final = 1024
"""The elements of the operands that are looked at."""


def _moved(value: Value, depth: int) -> np.ndarray[Any, Any] | None:
    """Return floats that nodes without arithmetic make of a small constant: the same numbers."""
    if value.tensor is not None:
        return value.const if value.tensor.size <= _MOST else None
    node = value.producer
    if node is None or node.domain or node.has_references or not depth:
        return None
    dtype = None if value.dtype is None else DataType(value.dtype)
    if dtype is None or not dtype.is_float:
        return None
    source = node.input(0)
    given = None if source is None else _moved(source, depth - 1)
    if given is None:
        return None
    if node.op_type in ("Cast", "CastLike") and given.dtype.kind not in "OSU":
        with np.errstate(over="ignore", invalid="ignore"):
            return given.astype(dtype.numpy)
    shape = value.shape
    is_known = shape is not None and all(isinstance(dim, int) for dim in shape)
    return given.reshape(shape) if node.op_type in VIEWS and is_known else None


def detached(array: np.ndarray[Any, Any], name: str = "const") -> Value:
    """Return a constant value of no graph; it enters one where it is written as an operand."""
    value = Value(0, None, name)
    value._type = NOT_INFERRED
    value._tensor = Tensor.of(array)
    return value


def says_the_same(form: OperatorForm) -> None:
    """Do not change a form."""


class OpsetChange(Record):
    """The changes of opset `since`: how to read the older form, and how to write it."""

    since: int
    read: Callable[[OperatorForm], None] = says_the_same
    write: Callable[[OperatorForm], None] = says_the_same


# --- attributes that became operands --------------------------------------------------------------


def moved(place: int, attribute: str, since: int, kind: str) -> OpsetChange:
    """Return the row of an operand that was an attribute before.

    Args:
        place: the index of the operand.
        attribute: the name of the attribute.
        since: the opset that changed it.
        kind: "int64" is a list of integers, "int64 [1]" a list of one integer that was an
            attribute of type INT, "int64 []" a scalar, "float" floats or a scalar, "like x" a
            scalar of the first operand's dtype.
    """

    def read(form: OperatorForm) -> None:
        raw = form.attributes.pop(attribute, None)
        if raw is None:
            return
        if isinstance(raw, AttributeReference):
            # A function parameter: present, but not constant.
            form.set_operand(place, Value(0, None, attribute))
        else:
            form.set_operand(place, detached(_READERS[kind](raw, form), attribute))

    def write(form: OperatorForm) -> None:
        operand = form.operand(place)
        if operand is None:
            return
        array = contents(operand)
        if array is None:
            raise form.declines(f"needs a constant {attribute} before opset {since}")
        if kind == "like x" and not _is_float32(array):
            raise form.declines(f"has {attribute} as a float32 before opset {since}")
        # Some files have a scalar where a list is due.
        one = kind in ("int64 [1]", "int64 []", "like x") or (kind == "float" and not array.ndim)
        if one and array.size != 1:
            raise form.declines(f"needs one number as {attribute} before opset {since}")
        form.attributes[attribute] = array.item() if one else array.ravel().tolist()
        form.set_operand(place, None)

    return OpsetChange(since, read, write)


def _is_float32(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an attribute, which is a float32, can hold each number."""
    if array.dtype.kind in "iub":
        return bool((np.abs(array.astype(np.float64)) <= 1 << 24).all())
    if array.dtype != np.float64:
        return True
    with np.errstate(over="ignore"):
        return np.array_equal(array.astype(np.float32).astype(np.float64), array, equal_nan=True)


def _like_x(raw: Any, form: OperatorForm) -> np.ndarray[Any, Any]:
    numpy_dtype = onnx.helper.tensor_dtype_to_np_dtype(form.dtype or onnx.TensorProto.FLOAT)
    # As an element of a smaller dtype, the lowest float32 is -inf.
    with np.errstate(over="ignore"):
        return np.array(raw, numpy_dtype)


_READERS: Final[Mapping[str, Callable[[Any, OperatorForm], np.ndarray[Any, Any]]]] = {
    "int64": lambda raw, _: np.array(raw, np.int64),
    "int64 [1]": lambda raw, _: np.array([raw], np.int64),
    "int64 []": lambda raw, _: np.array(raw, np.int64),
    "float": lambda raw, _: np.array(raw, np.float32),
    "like x": _like_x,
}


# --- operands that the older form does not have ---------------------------------------------------


def absent(place: int, since: int, means: Callable[[Any], bool]) -> OpsetChange:
    """Return the row of a new operand: the older form can be written only for its default."""

    def write(form: OperatorForm) -> None:
        if form.operand(place) is None:
            return
        array = form.numbers(place)
        if array is None or not means(array):
            raise form.declines(f"has no operand {place} before opset {since}")
        form.set_operand(place, None)

    return OpsetChange(since, write=write)


def value_since(attribute: str, value: Any, since: int) -> OpsetChange:
    """Return the row of a new attribute."""

    def write(form: OperatorForm) -> None:
        if form.attributes.get(attribute) == value:
            raise form.declines(f"has no {attribute}={value!r} before opset {since}")

    return OpsetChange(since, write=write)


def only_as(attribute: str, value: Any, since: int) -> OpsetChange:
    """Return the row of a new attribute whose default differs from the older behaviour."""

    def read(form: OperatorForm) -> None:
        form.attributes[attribute] = value

    def write(form: OperatorForm) -> None:
        if form.attributes.pop(attribute, None) != value:
            raise form.declines(f"means {attribute}={value!r} before opset {since}")

    return OpsetChange(since, read, write)


def renamed(attribute: str, names: Mapping[Any, Any], since: int) -> OpsetChange:
    """Return the row of an attribute with renamed values; the first one was its default."""
    older = {new: old for old, new in names.items()}

    def read(form: OperatorForm) -> None:
        raw = form.attributes.get(attribute, next(iter(names)))
        form.attributes[attribute] = names.get(raw, raw)

    def write(form: OperatorForm) -> None:
        raw = form.attributes.get(attribute, names[next(iter(names))])
        form.attributes[attribute] = older.get(raw, raw)

    return OpsetChange(since, read, write)


def never(since: int, reason: str) -> OpsetChange:
    """Return the row of an operator with another meaning in its older form."""

    def decline(form: OperatorForm) -> None:
        raise form.declines(reason)

    return OpsetChange(since, decline, decline)


def negative_axes(attribute: str) -> OpsetChange:
    """Return the row of axes that could not be counted from the end."""

    def write(form: OperatorForm) -> None:
        raw = form.attributes.get(attribute)
        axes = raw if isinstance(raw, Sequence) else [] if raw is None else [raw]
        if all(axis >= 0 for axis in axes):
            return
        rank = form.rank
        if rank is None:
            raise form.declines(f"needs a known rank to count {attribute} from the front")
        if form.op_type == "Unsqueeze":
            rank += len(axes)
        counted = [axis % rank for axis in axes]
        form.attributes[attribute] = counted if isinstance(raw, Sequence) else counted[0]

    return OpsetChange(11, write=write)


def drop_empty(form: OperatorForm, *places: int) -> None:
    """Leave operands out that are known to be empty tensors."""
    for place in places:
        value = form.operand(place)
        if value is not None and value.static_shape == (0,):
            form.set_operand(place, None)
