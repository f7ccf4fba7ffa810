"""Expressions: small graphs of one result, each structure once.

An expression is an operator with its attributes and operands, a border or a constant. Equal
expressions are one object, so what is shared counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import onnx

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.schema import default_of, schema_of
from tiered.graph.core.tensor import Tensor
from tiered.graph.queries.op_traits import VIEWS

Array = np.ndarray[Any, Any]
Attributes = tuple[tuple[str, Any], ...]
OPSET: Final = 21
"""The opset of all graphs that are enumerated."""
BORDER: Final = "border"
CONSTANT: Final = "constant"
_SELECTS: Final = frozenset({"Gather", "GatherND", "Slice", "Split"})
"""Operators that read no more elements than they write."""
_SMALL: Final = 64


@dataclass(frozen=True, eq=False, slots=True)
class GrammarExpr:
    """One result of an operator, a border or a constant.

    Attributes:
        number: its number in its table.
        op: the operator; BORDER or CONSTANT for what is none.
        attributes: by name, sorted; of a border its name.
        operands: expressions, None for an absent one.
        output: which result of the operator.
        domain: of the operator.
        dtype: of ONNX.
        shape: its sizes.
        array: the numbers of a constant.
    """

    number: int
    op: str
    attributes: Attributes
    operands: tuple[GrammarExpr | None, ...]
    output: int
    domain: str
    dtype: int
    shape: tuple[int, ...]
    array: Array | None = None

    @property
    def is_operator(self) -> bool:
        return self.op not in (BORDER, CONSTANT)

    @property
    def nbytes(self) -> int:
        return int(math.prod(self.shape) * DataType(self.dtype).numpy.itemsize)

    @property
    def node_key(self) -> tuple[Any, ...]:
        """What its node is: results of one node have equal keys."""
        operands = tuple(None if x is None else x.number for x in self.operands)
        return (self.op, self.domain, self.attributes, operands)

    def walk(self) -> Iterator[GrammarExpr]:
        """Yield all expressions in it, operands first."""
        seen: dict[int, GrammarExpr] = {}
        pending: list[tuple[GrammarExpr, bool]] = [(self, False)]
        while pending:
            each, is_ready = pending.pop()
            if each.number in seen:
                continue
            if is_ready:
                seen[each.number] = each
                yield each
                continue
            pending.append((each, True))
            pending += [(x, False) for x in reversed(each.operands) if x is not None]

    def nodes(self) -> dict[tuple[Any, ...], GrammarExpr]:
        """Return a result of each of its operators, operands first."""
        return {each.node_key: each for each in self.walk() if each.is_operator}

    @property
    def cost(self) -> tuple[int, int]:
        """How many nodes it has, and how many bytes they read and write.

        Views move none, and what a node reads twice counts once.
        """
        nodes = self.nodes().values()
        return len(nodes), sum(_moved(node) for node in nodes)

    def __str__(self) -> str:
        if self.op == BORDER:
            return str(self.attributes[0][1])
        if self.array is not None:
            return _short(self.array)
        held = [f"{name}={_plain(value)}" for name, value in self.attributes]
        held += [f"result={self.output}"] if self.output else []
        operands = ", ".join("_" if x is None else str(x) for x in self.operands)
        return f"{self.op}{'<' + ', '.join(held) + '>' if held else ''}({operands})"


def _moved(node: GrammarExpr) -> int:
    if node.domain == "" and node.op in VIEWS:
        return 0
    if node.domain == "" and node.op in _SELECTS:
        return 2 * node.nbytes
    # x + x reads the memory of x once, as x * 2 does, and so does the sum of x and a view of it.
    operands = [x for x in node.operands if x is not None and not _is_small(x)]
    return node.nbytes + sum({_viewed(x): x.nbytes for x in operands}.values())


def _viewed(expr: GrammarExpr) -> int:
    """Return the number of the expression whose memory an expression is."""
    while expr.domain == "" and expr.op in VIEWS and expr.operands[0] is not None:
        expr = expr.operands[0]
    return expr.number


def _is_small(expr: GrammarExpr) -> bool:
    """Return whether an expression is a parameter: a constant of few numbers."""
    return expr.array is not None and expr.array.size <= _SMALL


def _plain(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _short(array: Array) -> str:
    return np.array2string(array, separator=",", threshold=8).replace("\n", "").replace(" ", "")


class ExpressionTable:
    """Expressions by structure."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], GrammarExpr] = {}

    def border(self, name: str, dtype: int, shape: Sequence[int]) -> GrammarExpr:
        """Return a value from outside."""
        return self._made(BORDER, (("name", name),), (), 0, "", dtype, tuple(shape))

    def constant(self, array: Array) -> GrammarExpr:
        """Return a constant; equal bits of one dtype and shape are one."""
        dtype = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
        key = (CONSTANT, dtype, array.shape, array.tobytes())
        found = self._known.get(key)
        if found is None:
            found = GrammarExpr(
                len(self._known), CONSTANT, (), (), 0, "", dtype, array.shape, array
            )  # fmt: skip
            self._known[key] = found
        return found

    def apply(
        self,
        op: str,
        operands: Sequence[GrammarExpr | None],
        attributes: Mapping[str, Any] | Attributes = (),
        *,
        kind: tuple[int, Sequence[int]],
        output: int = 0,
        domain: str = "",
    ) -> GrammarExpr:
        """Return a result of an operator.

        Args:
            kind: its dtype and shape.
        """
        held = attributes.items() if isinstance(attributes, Mapping) else attributes
        frozen = tuple(
            sorted(
                (name, kept) for name, value in held
                if (kept := _frozen(value)) != _default(op, domain, name)
            )
        )  # fmt: skip
        dtype, shape = kind
        return self._made(op, frozen, tuple(operands), output, domain, dtype, tuple(shape))

    def _made(
        self,
        op: str,
        attributes: Attributes,
        operands: tuple[GrammarExpr | None, ...],
        output: int,
        domain: str,
        dtype: int,
        shape: tuple[int, ...],
    ) -> GrammarExpr:
        numbers = tuple(None if x is None else x.number for x in operands)
        key = (op, domain, attributes, numbers, output, dtype, shape)
        found = self._known.get(key)
        if found is None:
            found = GrammarExpr(
                len(self._known), op, attributes, operands, output, domain, dtype, shape
            )  # fmt: skip
            self._known[key] = found
        return found


@lru_cache(maxsize=1024)
def _default(op: str, domain: str, name: str) -> Any:
    """Return the default of an attribute; None without one."""
    schema = schema_of(op, domain, OPSET)
    return None if schema is None else _frozen(default_of(schema, name))


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(_frozen(each) for each in value)
    if isinstance(value, float | np.floating):
        return float(np.float32(value))
    return int(value) if isinstance(value, np.integer) else value


def node_of(expr: GrammarExpr, names: Mapping[int, str], outputs: Sequence[str]) -> onnx.NodeProto:
    """Return an operator as a node; the names of its operands are by their numbers."""
    operands = ["" if x is None else names[x.number] for x in expr.operands]
    node = onnx.NodeProto(op_type=expr.op, domain=expr.domain, input=operands, output=outputs)
    for name, value in expr.attributes:
        held = list(value) if isinstance(value, tuple) else value
        if isinstance(value, Tensor):
            held = value.to_proto("")
        node.attribute.append(onnx.helper.make_attribute(name, held))
    return node


def outputs_of(expr: GrammarExpr) -> int:
    """Return how many results an operator has at least."""
    if expr.op == "Split" and not expr.domain:
        sizes = expr.operands[1] if len(expr.operands) > 1 else None
        if sizes is not None and sizes.array is not None:
            return int(sizes.array.size)
        return int(dict(expr.attributes).get("num_outputs", expr.output + 1))
    return expr.output + 1
