"""Other shapes for the inputs of a model; a renamed dim is renamed in the whole model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import shape_inference

from tiered.graph.core.dim_names import EXPECTED, check_named, is_dim
from tiered.graph.core.types import Dim, Shape, TensorType, read_type
from tiered.graph.core.value import Value
from tiered.graph.edits.declared_types import drop_contradicted
from tiered.graph.io.export import export_model
from tiered.graph.io.protos import shapes_of_type
from tiered.graph.queries.onnx_errors import first_cause
from tiered.graph.queries.op_traits import BROADCASTING
from tiered.graph.shape_inference.onnx_inference import (
    DATA_ELEMENTS,
    is_inferable,
    propagation_is_bounded,
)
from tiered.support.amounts import counted
from tiered.support.errors import ShapeError, UsageError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState

Names = dict[str, Dim]
"""The new sizes or names of dims, by their old names."""


def set_input_shapes(
    model: ModelState,
    shapes: Mapping[str, Sequence[int | str]],
    dims: Mapping[str, int | str] | None = None,
) -> None:
    """Set the shapes of inputs of the main graph, and adapt the declarations of the model.

    Args:
        model: the model.
        shapes: by name of the input, for each dim a size, a name if it stays dynamic, or a
            negative number to keep it. The old name of a dim is replaced wherever it occurs in the
            main graph and its bodies; value_info that contradicts the result is dropped.
            Declarations of outputs get the inferred sizes.
        dims: the same by name of the dim, for all inputs that have it.

    Raises:
        UsageError: there is no such input or dim, or a size or a name is invalid.
        ShapeError: an input has another rank or another fixed size, one name would have two sizes,
            or the model only works with other sizes, for example because of a constant Reshape.
    """
    shapes = with_dims(model, shapes, dims or {})
    own, names = _requested(model, shapes)
    if not own:
        return
    with model.transaction():
        _write_shapes(model, shapes, own, names)


def _write_shapes(
    model: ModelState,
    shapes: Mapping[str, Sequence[int | str]],
    own: dict[Value, Shape],
    names: Names,
) -> None:
    was_valid = _complaint(model) is None
    graphs = [graph for graph in model.graphs() if graph.root is model.main]
    for graph in graphs:
        _declare(graph, own if graph.is_main else {}, names)
    model.forget_types()
    model.refresh_types()
    for graph in graphs:
        drop_contradicted(graph)
    declare_known_sizes(model)
    wrong = next(chain(_impossible_reshapes(model), _impossible_broadcasts(model)), None)
    complaint = _complaint(model) if was_valid and wrong is None else None
    if wrong is None and complaint is not None:
        wrong = next(_suspects(model), None) or complaint
    if wrong is not None:
        requested = ", ".join(f"{name}:{','.join(map(str, dims))}" for name, dims in shapes.items())
        raise ShapeError(f"the model does not work with {requested}: {wrong}")


def check_shapes(model: ModelState, shapes: Mapping[str, Sequence[int | str]]) -> None:
    """Raise if the inputs of a model cannot have some shapes.

    Raises:
        UsageError: there is no such input, or a size or a name is invalid.
        ShapeError: an input has another rank or another fixed size, or one name would have two.
    """
    _check_dims(shapes, {})
    _requested(model, shapes)


def with_dims(
    model: ModelState, shapes: Mapping[str, Sequence[int | str]], dims: Mapping[str, int | str]
) -> dict[str, Sequence[int | str]]:
    """Return the shapes by name of the input, with the dims that are given by their own names.

    Raises:
        UsageError: no input has a dim of this name, a size or a name is invalid, or the shape of an
            input gives the dim another size.
    """
    _check_dims(shapes, dims)
    check_named(dims, named_dims(model))
    found = dict(shapes)
    for name, known in declared_dims(model).items():
        if not any(dim in dims for dim in known if isinstance(dim, str)):
            continue
        given = found.get(name, [-1] * len(known))
        if len(given) != len(known):
            continue  # a wrong rank raises later
        found[name] = [
            _chosen(name, old, new, dims) if isinstance(old, str) and old in dims else new
            for old, new in zip(known, given, strict=True)
        ]
    return found


def _chosen(name: str, old: str, new: int | str, dims: Mapping[str, int | str]) -> int | str:
    """Return the size of a dim that is given by its name, and may be by the shape of an input.

    Raises:
        UsageError: they are two sizes.
    """
    size = dims[old]
    if _is_kept(new, old):
        return size
    if isinstance(size, int) and new != size:
        raise UsageError(
            f"the shape of {name!r} says {new} where the dim {old!r} is {size}: --input-shape and "
            "--dim (input_shapes and dims in Python) contradict each other; give one of them"
        )
    return new


def named_dims(model: ModelState) -> dict[str, list[tuple[str, int]]]:
    """Return the places (input, axis) of each named dim of the inputs."""
    places: dict[str, list[tuple[str, int]]] = {}
    for name, dims in declared_dims(model).items():
        for axis, dim in enumerate(dims):
            if isinstance(dim, str):
                places.setdefault(dim, []).append((name, axis))
    return places


def declared_dims(model: ModelState) -> dict[str, Shape]:
    """Return the dims of each input as the file declares them; None for unnamed ones."""
    # A renamed input may have the declaration of its former name.
    pairs = zip(model.main.inputs, model.main.input_infos, strict=True)
    declared = {value.name: read_type(info.type) for value, info in pairs}
    return {
        name: stated.shape
        for name, stated in declared.items()
        if isinstance(stated, TensorType) and stated.shape is not None
    }


def _is_kept(new: int | str, old: str) -> bool:
    return new == old or (isinstance(new, int) and new < 0)


def _check_dims(shapes: Mapping[str, Sequence[int | str]], dims: Mapping[str, int | str]) -> None:
    """Check that dims are sizes or names.

    Raises:
        UsageError: a dim is neither.
    """
    for name, given in shapes.items():
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise UsageError(f"the shape of {name!r} is {given!r}; expected a list of dims")
        for dim in given:
            if not is_dim(dim):
                raise UsageError(f"the shape of {name!r} has the dim {dim!r}; {EXPECTED}")
    for name, dim in dims.items():
        if not is_dim(dim):
            raise UsageError(f"the dim {name!r} is to be {dim!r}; {EXPECTED}")


# --- requested dims -------------------------------------------------------------------------------


def _requested(
    model: ModelState, shapes: Mapping[str, Sequence[int | str]]
) -> tuple[dict[Value, Shape], Names]:
    """Return the new dims of the inputs that change, and the new sizes or names of dims."""
    inputs = {value.name: value for value in model.main.inputs}
    own: dict[Value, Shape] = {}
    names: Names = {}
    for name, dims in shapes.items():
        if name not in inputs:
            there = ", ".join(inputs) or "none"
            raise UsageError(f"the model has no input {name!r}; it has {there}")
        before = inputs[name].type
        if not isinstance(before, TensorType):
            raise ShapeError(f"input {name!r} is no dense tensor and has no shape to set")
        after = _changed(name, before, dims)
        for old, new in zip(before.shape or (), after, strict=False):
            if isinstance(old, str) and new is not None and names.setdefault(old, new) != new:
                raise ShapeError(f"the dim {old!r} would be both {names[old]} and {new}")
        if before.shape is None or any(new is not None for new in after):
            own[inputs[name]] = after
    return own, names


def _changed(name: str, before: TensorType, dims: Sequence[int | str]) -> Shape:
    """Return the new dims of an input, None for each that is kept."""
    known: Sequence[Dim] = before.shape if before.shape is not None else [None] * len(dims)
    if len(known) != len(dims):
        raise ShapeError(
            f"input {name!r} has {counted(len(known), 'dim')} ({before}), not {len(dims)}"
        )
    changed: list[Dim] = []
    for at, (old, new) in enumerate(zip(known, dims, strict=True)):
        is_kept = new == old or (isinstance(new, int) and new < 0)
        if isinstance(old, int) and not is_kept:
            raise ShapeError(f"dim {at} of input {name!r} is {old} ({before}), it cannot be {new}")
        changed.append(None if is_kept else new)
    return tuple(changed)


# --- declarations ---------------------------------------------------------------------------------


def _declare(graph: Graph, own: Mapping[Value, Shape], names: Names) -> None:
    """Rename dims in the declarations of inputs, outputs and other values of a graph."""
    inputs = [
        _renamed(info, names, own.get(value))
        for value, info in zip(graph.inputs, graph.input_infos, strict=True)
    ]
    if inputs != list(graph.input_infos):
        graph.set_graph_inputs(graph.inputs, inputs)
    outputs = [_renamed(info, names) for info in graph.output_infos]
    if outputs != list(graph.output_infos):
        graph.set_graph_outputs(graph.outputs, outputs)
    stated = [(value, _renamed(info, names)) for value, info in graph.declarations]
    if stated != graph.declarations:
        graph.set_declarations(stated)


def _renamed(
    info: onnx.ValueInfoProto, names: Names, own: Shape | None = None
) -> onnx.ValueInfoProto:
    """Return a declaration with renamed dims; itself if they are the same."""
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    for shape in shapes_of_type(copy.type):
        for dim in shape.dim:
            if dim.dim_param in names:
                write_dim(dim, names[dim.dim_param])
    if own is not None:
        dims = copy.type.tensor_type.shape.dim
        while len(dims) < len(own):
            dims.add()
        for dim, size in zip(dims, own, strict=True):
            write_dim(dim, size)
        copy.type.tensor_type.shape.SetInParent()
    return info if copy == info else copy


def write_dim(dim: onnx.TensorShapeProto.Dimension, size: Dim) -> None:
    """Write the size or the name of a dim; nothing if neither is known."""
    if isinstance(size, int):
        dim.dim_value = size
    elif size is not None:
        dim.dim_param = size


def declare_known_sizes(model: ModelState) -> None:
    """Write inferred sizes into the declarations of outputs and other values.

    Inputs and dims with a declared size do not change.
    """
    for graph in model.graphs():
        if graph.root is not model.main:
            continue
        outputs = [
            _sized(info, value)
            for value, info in zip(graph.outputs, graph.output_infos, strict=True)
        ]
        if any(new is not old for new, old in zip(outputs, graph.output_infos, strict=True)):
            graph.set_graph_outputs(graph.outputs, outputs)
        stated = [(value, _sized(info, value)) for value, info in graph.declarations]
        pairs = zip(stated, graph.declarations, strict=True)
        if any(new[1] is not old[1] for new, old in pairs):
            graph.set_declarations(stated)


def _sized(info: onnx.ValueInfoProto, value: Value | None) -> onnx.ValueInfoProto:
    """Return a declaration with the inferred sizes of the value; itself if nothing is new."""
    known = None if value is None or value.input_of is not None else value.shape
    declared = info.type.tensor_type.shape.dim
    if known is None or len(known) != len(declared) or not info.type.HasField("tensor_type"):
        return info
    sizes = [
        size if isinstance(size, int) and not dim.HasField("dim_value") else None
        for size, dim in zip(known, declared, strict=True)
    ]
    if not any(size is not None for size in sizes):
        return info
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    for dim, size in zip(copy.type.tensor_type.shape.dim, sizes, strict=True):
        write_dim(dim, size)
    return copy


# --- contradictions -------------------------------------------------------------------------------


def _complaint(model: ModelState) -> str | None:
    """Return the first error of onnx's strict inference; None if there is none."""
    proto = export_model(model, max_elements=DATA_ELEMENTS)
    if not is_inferable(model):
        return None
    try:
        bounded = propagation_is_bounded(model, proto)
        shape_inference.infer_shapes(proto, strict_mode=True, data_prop=bounded)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        return first_cause(error)
    return None


def _reshapes(model: ModelState) -> Iterator[tuple[str, Sequence[int], Sequence[int], bool]]:
    """Yield (description, input shape, target, whether 0 copies) of each static Reshape."""
    for node in model.main.walk():
        data, target = (node.input(0), node.input(1)) if node.op_type == "Reshape" else (None, None)
        if node.domain or data is None or target is None or data.static_shape is None:
            continue
        # A body may never run; what is computed in the main graph always is.
        found = target.elements if node.owner.is_main else target.constant_elements()
        if found is None or not all(isinstance(size, int | np.integer) for size in found.ravel()):
            continue
        sizes = [int(size) for size in found.ravel()]
        text = f"Reshape {node.label!r} makes {sizes} of {list(data.static_shape)}"
        origin = "baked into its constant" if target.is_constant else "computed as its target"
        text += f", which is {origin} {target.name!r}"
        yield text, data.static_shape, sizes, not node.attr("allowzero", 0)


def _impossible_reshapes(model: ModelState) -> Iterator[str]:
    """Yield each Reshape whose constant target has another number of elements."""
    for text, data, target, copies in _reshapes(model):
        sizes = [
            data[at] if size == 0 and copies and at < len(data) else size
            for at, size in enumerate(target)
        ]
        total, room = math.prod(data), math.prod(size for size in sizes if size >= 0)
        has_rest = any(size < 0 for size in sizes)
        if total != room if not has_rest else (room == 0 or total % room != 0):
            yield text


def _impossible_broadcasts(model: ModelState) -> Iterator[str]:
    """Yield each elementwise node of the main graph, which always runs, with operands that differ.

    onnx reports only those with shapes that it infers without the values of the view.
    """
    for node in model.main.nodes:
        if node.domain or node.op_type not in BROADCASTING or node.attr("broadcast", 0):
            continue
        shapes = [value.static_shape for value in node.inputs if value is not None]
        known = [shape for shape in shapes if shape is not None]
        columns = zip_longest(*(reversed(shape) for shape in known), fillvalue=1)
        if any(len(set(column) - {1}) > 1 for column in columns):
            shown = " and ".join(str(list(shape)) for shape in known)
            yield f"{node.op_type} {node.label!r} cannot broadcast {shown}"


def _suspects(model: ModelState) -> Iterator[str]:
    """Yield each Reshape that changes the first dim: the batch may be fixed in its target."""
    for text, data, target, _ in _reshapes(model):
        if data and target and target[0] > 1 and target[0] != data[0]:
            yield text
