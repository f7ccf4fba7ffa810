"""What is being built: values as the generator knows them, and the graph that they are in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

FLOATS = ("float32", "float32", "float32", "float64", "float16")
INTS = ("int64", "int64", "int32", "uint8", "int8")
DTYPES = (*FLOATS, *INTS, "bool")

_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, 0.5, -2.5)
_WORDS = ("", "a", "b", "ab")

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """A value as the generator knows it: its sizes are those at run time."""

    name: str
    dtype: str
    shape: Shape
    const: bool = False


@dataclass
class Scope:
    """One graph that is being built, and what it sees.

    Attributes:
        grow: adds something to a graph.
        dtypes: of constants that are made where no value fits.
        is_simple: nothing that onnx.reference gets wrong may be added.
        is_dynamic: the model is run with other sizes too, so that no shape can be declared.
    """

    random: Random
    opset: int
    names: list[int]
    grow: Callable[[Scope], object]
    seen: list[Known] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    depth: int = 0
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    dtypes: tuple[str, ...] = DTYPES
    is_simple: bool = False
    is_dynamic: bool = False

    def fresh(self, stem: str = "v") -> str:
        self.names[0] += 1
        return f"{stem}{self.names[0]}"

    def add(
        self, op: str, inputs: Sequence[Known | None], dtype: str, shape: Shape, **attributes: Any
    ) -> Known:
        """Add a node of one output."""
        return self.add_many(op, inputs, [(dtype, shape)], **attributes)[0]

    def add_many(
        self,
        op: str,
        inputs: Sequence[Known | None],
        outputs: Sequence[tuple[str, Shape]],
        domain: str = "",
        **attributes: Any,
    ) -> list[Known]:
        made = [Known(self.fresh(), dtype, tuple(shape)) for dtype, shape in outputs]
        names = ["" if value is None else value.name for value in inputs]
        node = helper.make_node(
            op, names, [value.name for value in made], domain=domain, **attributes
        )
        node.name = f"n{made[0].name}" if self.random.random() < 0.9 else ""
        self.nodes.append(node)
        self.seen += made
        return made

    def constant(self, array: Array) -> Known:
        """Add a constant in one of the forms that there are."""
        known = Known(self.fresh("c"), array.dtype.name, array.shape, const=True)
        tensor = numpy_helper.from_array(array, known.name)
        if self.random.random() < 0.3:
            self.nodes.append(helper.make_node("Constant", [], [known.name], value=tensor))
        else:
            self.initializers.append(tensor)
        self.seen.append(known)
        return known

    def ints(self, *numbers: int) -> Known:
        return self.constant(np.array(numbers, np.int64))

    def some(self, dtypes: Sequence[str] | None = None, least: int = 0) -> Known:
        """Return a value of one of the dtypes and of so many dims; a new one where none fits."""
        fitting = [
            value
            for value in self.seen
            if (dtypes is None or value.dtype in dtypes) and len(value.shape) >= least
        ]
        if fitting and self.random.random() < 0.95:
            # The later ones more often, so that graphs grow deep.
            place = int(len(fitting) * self.random.random() ** 0.5)
            return fitting[min(place, len(fitting) - 1)]
        dtype = self.random.choice(dtypes or self.dtypes)
        shape = tuple(self.random.choice((1, 2, 3)) for _ in range(max(least, 2)))
        return self.constant(numbers(self.random, dtype, shape))


def numbers(random: Random, dtype: str, shape: Shape, special: float = 0.15) -> Array:
    """Return an array of small numbers, some of them special."""
    size = int(np.prod(shape))
    kind = numpy_type(dtype)
    if dtype == "object":
        return np.array([random.choice(_WORDS) for _ in range(size)], object).reshape(shape)
    if dtype == "bool":
        drawn: list[Any] = [random.random() < 0.5 for _ in range(size)]
    elif is_integer(dtype):
        low, high = (0, 3) if "u" in dtype else (-4, 4)
        drawn = [random.randint(low, high) for _ in range(size)]
    else:
        # To onnx.reference a complex infinity times 1 is half a NaN.
        special = 0 if dtype.startswith("complex") else special
        drawn = [
            random.choice(_SPECIAL) if random.random() < special else random.randint(-8, 8) / 4
            for _ in range(size)
        ]
    with np.errstate(all="ignore"):
        exact = bool if dtype == "bool" else np.int64 if is_integer(dtype) else np.float64
        return np.array(drawn, exact).astype(kind).reshape(shape)


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def onnx_type(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(numpy_type(dtype)))


def is_integer(dtype: str) -> bool:
    return dtype.removeprefix("u").startswith("int")


def declared(scope: Scope, value: Known) -> onnx.ValueInfoProto:
    """Return what a body says of an input or output: its rank, and the sizes that are certain."""
    shape = [None if scope.is_dynamic else size for size in value.shape]
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), shape)
