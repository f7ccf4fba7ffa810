"""A problem: nodes before and after, what they read, and what both compute."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array
from tiered.certify.trial_sizes import TrialSizes, assignments
from tiered.graph.core.tensor import Tensor as Stored
from tiered.graph.shape_inference.symbolic_dims import Poly, Size
from tiered.support.operator_name import operator_name
from tiered.verify.part_extraction import names_read

ASSUMED: Final = 8
"""Tensors of more integers are not assumed to be shapes."""
_INTEGERS: Final[dict[int, np.dtype[Any]]] = {
    int(onnx.TensorProto.INT64): np.dtype(np.int64),
    int(onnx.TensorProto.INT32): np.dtype(np.int32),
}
ABSTRACT: Final = 16
"""Constants of more elements that both sides read are unknowns at first: any numbers will do."""
FunctionKey = tuple[str, str, str]


@dataclass(frozen=True)
class Border:
    """A value that a region reads, and that is the same before and after.

    Attributes:
        dtype: of ONNX.
        dims: sizes, polynomials of names, or None for unknown ones; None for an unknown rank.
        name: what dims are named after where the rank is not known.
        elements: its elements, if they are integers that shape inference knows for all sizes.
    """

    dtype: int
    dims: tuple[Size | None, ...] | None
    name: str = ""
    elements: tuple[Size, ...] | None = None

    def names(self, sizes: TrialSizes) -> set[str]:
        """Return the names of its dims."""
        if self.dims is None:
            return {f"{self.name}[{axis}]" for axis in range(sizes.rank if self.name else 0)}
        polys = [dim for dim in self.dims if isinstance(dim, Poly)]
        return {name for poly in polys for names, _ in poly.terms for name in names}

    def shape(self, sizes: TrialSizes) -> tuple[int, ...] | None:
        """Return its shape at some sizes; None if it has none."""
        if self.dims is None and self.name:
            return tuple(sizes[f"{self.name}[{axis}]"] for axis in range(sizes.rank))
        if self.dims is None or None in self.dims:
            return None
        found = tuple(size_at(dim, sizes) for dim in self.dims if dim is not None)
        return None if min(found, default=0) < 0 else found

    def __str__(self) -> str:
        name = onnx.TensorProto.DataType.Name(self.dtype).lower()
        dims = (
            "?" if self.dims is None else ",".join("?" if d is None else str(d) for d in self.dims)
        )
        return f"{name}[{dims}]"


def size_at(size: Size, sizes: TrialSizes) -> int:
    """Return a polynomial at some sizes."""
    if not isinstance(size, Poly):
        return int(size)
    total = 0
    for names, coefficient in size.terms:
        total += coefficient * math.prod(sizes[name] for name in names)
    return total


def content_of(node: onnx.NodeProto, *, with_outputs: bool = True) -> bytes:
    """Return a node's operator and attributes, and which outputs it has, as bytes."""
    held = [each.SerializeToString(deterministic=True) for each in node.attribute]
    present = bytes(bool(name) for name in node.output if with_outputs)
    names = (node.domain, node.op_type, node.overload)
    return b"\0".join([*(name.encode() for name in names), present, *sorted(held)])


@dataclass(frozen=True)
class Side:
    """The nodes of one side, in topological order, with their constants and local functions."""

    nodes: Sequence[onnx.NodeProto]
    constants: Mapping[str, Stored]
    functions: Mapping[FunctionKey, onnx.FunctionProto] = field(default_factory=dict)


def _key_of(node: onnx.NodeProto, places: dict[str, int]) -> Hashable:
    """Return a node with numbers for its names, in the order in which they occur."""
    numbers = [places.setdefault(name, len(places)) for name in (*node.input, *node.output)]
    if not any(each.HasField("g") or each.graphs for each in node.attribute):
        return content_of(node), *numbers
    captured = [name for name in names_read(node) if name not in node.input]
    also = [(name, places.setdefault(name, len(places))) for name in captured]
    return content_of(node), *numbers, *also


class Given:
    """Values that borders are known to have at some sizes: those that compute dims."""

    def at(self, sizes: TrialSizes) -> Mapping[str, Array]:
        """Return the known values by name; by default none."""
        return {}


class Assumed(Given):
    """Small integers that borders are assumed to have: they are tried at some sizes, as dims are.

    Args:
        known: what borders are known to be.
        borders: the others, by name.
        are_targets: whether they are shapes that any tensor takes: -1 and sizes of 1.
    """

    def __init__(
        self, known: Given, borders: Mapping[str, Border], *, are_targets: bool = False
    ) -> None:
        self._known = known
        self._borders = borders
        self._are_targets = are_targets

    def at(self, sizes: TrialSizes) -> Mapping[str, Array]:
        found = dict(self._known.at(sizes))
        for name, border in self._borders.items():
            shape = border.shape(sizes)
            if name not in found and shape is not None and math.prod(shape) <= ASSUMED:
                count = math.prod(shape)
                names = [f"{name}({'-1 ' if self._are_targets else ''}{at})" for at in range(count)]
                if self._are_targets:
                    free = 0 if sizes.rank % 2 else count - 1
                    sizes.update((each, 1 - 2 * (at == free)) for at, each in enumerate(names))
                numbers = [sizes[each] for each in names]
                found[name] = np.asarray(numbers, _INTEGERS[border.dtype]).reshape(shape)
        return found

    def names(self, sizes: TrialSizes) -> list[str]:
        """Return the names of the numbers, as of dims."""
        return [
            name for name in sizes
            if "(" in name and name.split("(", 1)[0] in self._borders
            and ("(-1 " in name) == self._are_targets
        ]  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """Do two sides compute the same outputs from the same borders?

    Attributes:
        sides: before and after.
        borders: what they read, by name; constants apart.
        outputs: the values to compare.
        opsets: of both, by domain.
        given: the values of some borders.
        sizes: those at which it is tried.
        excuses_empty: whether a difference at sizes of 0 alone is only noted.
    """

    sides: tuple[Side, Side]
    borders: Mapping[str, Border]
    outputs: Sequence[str]
    opsets: Mapping[str, int]
    given: Given = field(default_factory=Given)
    sizes: Sequence[TrialSizes] = field(default_factory=assignments)
    excuses_empty: bool = False

    def assuming(self) -> Sequence[Problem]:
        """Return the problem with integers that may be shapes or places, in two ways if any."""
        borders = {
            name: border
            for name, border in self.borders.items()
            if border.dtype in _INTEGERS and border.dims is not None and len(border.dims) <= 1
        }
        if not borders:
            return ()
        return [
            replace(self, given=Assumed(self.given, borders, are_targets=are_targets))
            for are_targets in (False, True)
        ]

    def shared(self) -> frozenset[str]:
        """Return the large constants that are the same on both sides, or on one side alone before.

        A proof for unknowns in their place holds for all numbers.
        """
        before, after = (side.constants for side in self.sides)
        return frozenset(
            name for name, tensor in before.items()
            if tensor.size > ABSTRACT and (name not in after or after[name] is tensor)
        )  # fmt: skip

    def key(self, abstract: Collection[str]) -> Hashable:
        """Return what a proof depends on: equal keys have equal proofs.

        Args:
            abstract: the constants whose numbers do not count.
        """
        places: dict[str, int] = {"": -1}
        nodes = [tuple(_key_of(node, places) for node in side.nodes) for side in self.sides]
        outputs = tuple(places.setdefault(name, len(places)) for name in self.outputs)
        borders = tuple(
            (place, border.dtype, border.dims, border.elements, self._given_key(name))
            for name, place in places.items()
            if (border := self.borders.get(name)) is not None
        )
        constants = tuple(
            (place, (tensor.dtype, tensor.shape) if name in abstract else tensor.key())
            for side in self.sides
            for name, place in places.items()
            if (tensor := side.constants.get(name)) is not None
        )
        functions = tuple(
            text.SerializeToString(deterministic=True)
            for side in self.sides
            for text in side.functions.values()
        )
        counts = tuple(len(side.constants) for side in self.sides)
        opsets = tuple(sorted(self.opsets.items()))
        return (*nodes, outputs, borders, constants, counts, functions, opsets)

    def _given_key(self, name: str) -> Hashable:
        tried = (sizes for sizes in self.sizes if self.has_unknown_ranks or not sizes.for_ranks)
        found = (self.given.at(sizes).get(name) for sizes in tried)
        return tuple(
            None if each is None else (each.dtype.str, each.shape, each.tobytes()) for each in found
        )

    @cached_property
    def operators(self) -> frozenset[str]:
        """The names of all operators, also in bodies and local functions, as rules are named."""
        nodes = [node for side in self.sides for node in side.nodes]
        nodes += [
            node for side in self.sides for each in side.functions.values() for node in each.node
        ]
        found: set[str] = set()
        while nodes:
            node = nodes.pop()
            found.add(operator_name(node.domain, node.op_type))
            nodes += [inner for each in node.attribute for inner in each.g.node]
        return frozenset(found)

    @property
    def has_loops(self) -> bool:
        """Whether a node is a loop, also one of a body or of a local function."""
        return not self.operators.isdisjoint(("Loop", "Scan"))

    @cached_property
    def has_unknown_ranks(self) -> bool:
        """Whether a border may have any rank."""
        return any(border.dims is None for border in self.borders.values())

    @cached_property
    def fitted(self) -> dict[int, TrialSizes]:
        """Sizes that the first side takes, in the place of others, by their identity."""
        return {}

    @property
    def is_fitted_to_values(self) -> bool:
        """Whether other sizes were needed, at which borders may have values of their own."""
        return bool(self.fitted) and any(self.given.at(sizes) for sizes in self.sizes)

    def summands(self, size: int, sizes: TrialSizes) -> list[str]:
        """Return the names that dims of some size are, or are sums of."""
        dims = [
            dim
            for border in self.borders.values()
            for dim in border.dims or ()
            if isinstance(dim, Poly) and size_at(dim, sizes) == size
        ]
        terms = [term for dim in sorted(dims, key=lambda dim: len(dim.terms)) for term in dim.terms]
        return [names[0] for names, coefficient in terms if len(names) == 1 == coefficient]

    def used(self, sizes: TrialSizes) -> dict[str, int]:
        """Return the sizes of all dims, and the integers that are assumed, sorted by name."""
        names = {name for border in self.borders.values() for name in border.names(sizes)}
        if isinstance(self.given, Assumed):
            names.update(self.given.names(sizes))
        return {name: sizes[name] for name in sorted(names)}
