"""The dims of two models that become one: those of values that become one are equal."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import onnx

from tiered.graph import TensorType
from tiered.graph.core.types import Dim
from tiered.graph.io.protos import graphs_of, shapes_of_type
from tiered.graph.shape_inference.set_input_shapes import write_dim
from tiered.pipeline.compose.connections import Joints, Pairs
from tiered.support.errors import ModelError


class _Name(NamedTuple):
    """The name of a dim in the first or the second model."""

    model: Literal[0, 1]
    name: str


class EqualDims:
    """Dims that are equal, and the sizes that some of them have.

    Args:
        pairs: values of the first model with those of the second that are the same.
        shared: the names of inputs that both have.

    Raises:
        ModelError: a dim would have two sizes.
    """

    def __init__(self, pairs: Pairs, shared: Sequence[str]) -> None:
        self.shared = shared
        self._parents: dict[_Name, _Name] = {}
        self._sizes: dict[_Name, tuple[int, str]] = {}
        for one, other in pairs:
            if not isinstance(one.type, TensorType) or not isinstance(other.type, TensorType):
                continue
            reason = f"{one.name!r} is {one.type} and {other.name!r} is {other.type}"
            for a, b in zip(one.type.shape or (), other.type.shape or (), strict=False):
                self._equate(a, b, reason)

    def of(self, model: Literal[0, 1], name: str) -> tuple[Dim, list[str], list[str]]:
        """Return the size of a dim, and the names that it has in the first and second model."""
        root = self._root(_Name(model, name))
        alike = [each for each in self._parents if self._root(each) == root]
        size = self._sizes.get(root)
        named = [[each.name for each in alike if each.model == at] for at in (0, 1)]
        return None if size is None else size[0], named[0], named[1]

    def _root(self, name: _Name) -> _Name:
        while self._parents.setdefault(name, name) != name:
            name = self._parents[name]
        return name

    def _equate(self, one: Dim, other: Dim, reason: str) -> None:
        names: list[_Name] = []
        if isinstance(one, str):
            names.append(_Name(0, one))
        if isinstance(other, str):
            names.append(_Name(1, other))
        if one is None or other is None or not names:
            return
        root = self._root(names[0])
        for size, why in self._sizes_of(one, other, names, reason):
            before = self._sizes.setdefault(root, (size, why))
            if before[0] != size:
                raise ModelError(
                    f"dim {names[0].name!r} would be both {before[0]} and {size}: {before[1]}, "
                    f"but {why}"
                )
        self._parents[self._root(names[-1])] = root

    def _sizes_of(
        self, one: Dim, other: Dim, names: list[_Name], reason: str
    ) -> list[tuple[int, str]]:
        """Return the sizes that two equal dims have, each with its reason."""
        found = [(size, reason) for size in (one, other) if isinstance(size, int)]
        known = self._sizes.get(self._root(names[-1]))
        return found if known is None else [*found, known]


def equal_dims(joints: Joints) -> EqualDims:
    """Return which dims of two models are equal.

    Raises:
        ModelError: a dim would have two sizes.
    """
    shared = [value.name for value, _ in joints.shared]
    return EqualDims([*joints.connected, *joints.shared], shared)


def reconcile_dims(
    first: onnx.ModelProto, second: onnx.ModelProto, equal: EqualDims, prefix: str
) -> None:
    """Give equal dims one name or size in both models, and others of the second their own names."""
    taken = _dims(first)
    names: dict[str, Dim] = {}
    for name in taken:
        size, alike, _ = equal.of(0, name)
        names[name] = size if size is not None else next(each for each in alike if each in taken)
    own = _dims(second)
    linked = _linked(equal, own, names)
    _write(first, names)
    _write(second, linked | _unlinked({*own} - linked.keys(), names, linked, prefix))
    for name in equal.shared:
        _complete(_input(first, name), _input(second, name))


def _linked(equal: EqualDims, own: Iterable[str], names: Mapping[str, Dim]) -> dict[str, Dim]:
    """Return what the dims of the second model are called that equal dims of the first."""
    found: dict[str, Dim] = {}
    for name in own:
        size, there, _ = equal.of(1, name)
        known = next((names[each] for each in there if each in names), None)
        if size is not None or known is not None:
            found[name] = size if size is not None else known
    return found


def _unlinked(
    own: set[str], names: Mapping[str, Dim], linked: Mapping[str, Dim], prefix: str
) -> dict[str, Dim]:
    """Return what the other dims of the second model are called."""
    found: dict[str, Dim] = {}
    used = {*linked.values()}
    for name in sorted(own):
        wanted = prefix + name
        # A dim with a name that a linked dim has now is another one.
        if wanted in used or (prefix and wanted in names):
            found[name] = free_name(wanted, {*names, *own})
            continue
        known = names.get(wanted, wanted)
        # So is one whose namesake has a size or the name of a linked dim: its name is free now.
        found[name] = known if isinstance(known, str) and known not in used else wanted
    return found


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: itself, or with a number."""
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _infos(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    return [
        info
        for graph in graphs_of(proto)
        for info in (*graph.input, *graph.output, *graph.value_info)
    ]


def _dims(proto: onnx.ModelProto) -> dict[str, None]:
    """Return the names of the dims of a model, in their order."""
    return {
        dim.dim_param: None
        for info in _infos(proto)
        for shape in shapes_of_type(info.type)
        for dim in shape.dim
        if dim.dim_param
    }


def _write(proto: onnx.ModelProto, names: Mapping[str, Dim]) -> None:
    for info in _infos(proto):
        for shape in shapes_of_type(info.type):
            for dim in shape.dim:
                if dim.dim_param:
                    write_dim(dim, names[dim.dim_param])


def _input(proto: onnx.ModelProto, name: str) -> onnx.ValueInfoProto:
    return next(info for info in proto.graph.input if info.name == name)


def _complete(info: onnx.ValueInfoProto, other: onnx.ValueInfoProto) -> None:
    """Give the declaration of an input the dims that only the other declaration has."""
    if not info.type.HasField("tensor_type") or not other.type.HasField("tensor_type"):
        return
    if not info.type.tensor_type.HasField("shape") and other.type.tensor_type.HasField("shape"):
        info.type.tensor_type.shape.CopyFrom(other.type.tensor_type.shape)
    dims = zip(info.type.tensor_type.shape.dim, other.type.tensor_type.shape.dim, strict=False)
    for dim, more in dims:
        if dim.WhichOneof("value") is None:
            dim.CopyFrom(more)
