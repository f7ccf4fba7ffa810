"""Inputs with one batch size, at any axis  =>  the same inputs with another size, or a named dim"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx

from tiered import (
    InterfaceMap,
    Model,
    Node,
    PassContext,
    ShapeError,
    Skip,
    TensorType,
    UsageError,
    Value,
    module_pass,
)
from tiered.idioms.tensors import input_named

_TRIALS = (2, 3)
"""Sizes to try the result with; a constant that bakes the batch fits one of them at most."""

Shapes = dict[Value, tuple[int, ...]]


@module_pass(opt_level=None, required=("infer_shapes",), acts_on=("*",), changes_interface=True)
def change_batch(
    model: Model,
    ctx: PassContext,
    *,
    size: int | str = 16,
    axes: dict[str, int] | None = None,
) -> Skip | None:
    """Change the batch size of inputs: TVM's ChangeBatch.

    `const_batch_size` only gives a size to a dynamic batch. Here the present one may be fixed:
    constant targets of Reshapes follow it where each image is reshaped for itself. What else needs
    the former size is named in the error.

    Args:
        size: the new size, or a name: the batch is dynamic then.
        axes: the axis of the batch by input. By default axis 0 of the first input, and of all that
            have the same size there.

    Raises:
        UsageError: there is no such input or axis, the size is no size, or the batches differ.
        ShapeError: the model needs the former size, for example in a constant operand.
    """
    if isinstance(size, int) and size < 1:
        raise UsageError(f"change_batch: a batch cannot have the size {size}")
    places = {input_named(model, name, "change_batch"): at for name, at in (axes or {}).items()}
    places = {value: _axis(value, at) for value, at in (places or _first_axes(model)).items()}
    dims = {value.dim(at) for value, at in places.items()}
    if not dims:
        return Skip("no input has a batch")
    if dims == {size}:
        return Skip("the batch has this size")
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(dims) > 1 and sizes:
        raise UsageError(f"change_batch: the inputs have the batches {', '.join(map(str, dims))}")
    if sizes:
        _change(model, places, sizes[0], size)
    else:
        model.set_input_shapes(
            {value.name: _only(value, at, size) for value, at in places.items()}
        )
    return None


def _first_axes(model: Model) -> dict[Value, int]:
    inputs = [value for value in model.main.inputs if not value.is_overridable and value.rank]
    dims = [value.dim(0) for value in inputs]
    return {value: 0 for value, dim in zip(inputs, dims, strict=True) if dim == dims[0]}


def _axis(value: Value, axis: int) -> int:
    rank = value.rank
    if rank is None or not -rank <= axis < rank:
        kind = "an unknown rank" if rank is None else f"{rank} axes"
        raise UsageError(f"change_batch: {value.name!r} has {kind}, and no axis {axis}")
    return axis % rank


def _only(value: Value, axis: int, size: int | str) -> list[int | str]:
    return [size if at == axis else -1 for at in range(value.rank or 0)]


def _change(model: Model, places: Mapping[Value, int], old: int, size: int | str) -> None:
    """Make a batch of a fixed size dynamic, and then give it the size."""
    shapes: Shapes = {}
    for graph in model.graphs():
        for value in graph.values.values():
            shape = value.static_shape
            if shape is not None:
                shapes[value] = shape
    name = size if isinstance(size, str) else _free_name(model)
    with model.transaction():
        _forget_size(model, old)
        for value, axis in places.items():
            dims = [name if at == axis else value.dim(at) for at in range(value.rank or 0)]
            assert value.dtype is not None
            model.main.set_declared_type(value, TensorType(value.dtype, tuple(dims)))
        _adapt(model, shapes, old)
        for trial in {old * factor for factor in _TRIALS}:
            copy = model.copy()
            copy.set_input_shapes({}, {name: trial})
            copy.close()
        if isinstance(size, int):
            model.set_input_shapes({}, {name: size})
            relation = InterfaceMap(new=f"the batch was {old} and is {size}")
        else:
            # The samples of the former size go on.
            relation = InterfaceMap({value.name: (value.name, None) for value in places})
        _declare_outputs(model)
        model.note_interface(relation)


def _free_name(model: Model) -> str:
    taken = {dim for value in model.main.inputs for dim in value.shape or ()}
    return next(name for name in _names() if name not in taken)


def _names() -> Iterator[str]:
    yield "batch"
    number = 1
    while True:
        yield f"batch_{number}"
        number += 1


def _forget_size(model: Model, old: int) -> None:
    """Remove sizes that may contain the batch from the declarations of outputs and inner values."""
    for graph in [graph for graph in model.graphs() if not graph.root.is_function]:
        infos = [_without(info, old) for info in graph.output_infos]
        graph.set_graph_outputs(graph.outputs, infos)
        graph.set_declarations([(value, _without(info, old)) for value, info in graph.declarations])


def _without(info: onnx.ValueInfoProto, old: int) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    for dim in copy.type.tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value % old == 0:
            dim.ClearField("dim_value")
    return copy


def _declare_outputs(model: Model) -> None:
    graph = model.main
    for value, info in zip(graph.outputs, graph.output_infos, strict=True):
        known = value.type
        is_open = any(dim.WhichOneof("value") is None for dim in info.type.tensor_type.shape.dim)
        if is_open and isinstance(known, TensorType) and known.shape is not None:
            dims = tuple(dim if _is_plain(dim) else None for dim in known.shape)
            graph.set_declared_type(value, TensorType(known.dtype, dims))


def _is_plain(dim: int | str | None) -> bool:
    return isinstance(dim, int) or (isinstance(dim, str) and not dim.startswith(("=", "unk__")))


# --- Reshapes -------------------------------------------------------------------------------------


def _adapt(model: Model, shapes: Shapes, old: int) -> None:
    """Let the constant targets of Reshapes follow the batch, from the inputs to the outputs."""
    for graph in [graph for graph in model.graphs() if not graph.root.is_function]:
        for node in graph.topological_order():
            target = _adapted(node, shapes, old) if node.is_op("Reshape") else None
            if target is not None:
                constant = graph.constant(np.array(target, np.int64), f"{node.label}_shape")
                before = node.inputs[1]
                graph.set_input(node, 1, constant)
                graph.discard(before)
                model.forget_types()


def _adapted(node: Node, shapes: Shapes, old: int) -> list[int] | None:
    """Return the target of a Reshape for any batch; None where it is right, or none is found."""
    data, target = node.inputs[0], node.inputs[1]
    if data is None or target is None or target.const is None or data not in shapes:
        return None
    was, now = shapes[data], data.shape
    changed = [at for at, dim in enumerate(now or ()) if dim != was[at]]
    if len(changed) != 1 or 0 in was or node.attr("allowzero", 0):
        return None
    made = [int(number) for number in target.const.ravel()]
    sizes = _resolved(made, was)
    at = _batch_axis(sizes, math.prod(was[: changed[0]]), old)
    if at is None:
        raise ShapeError(
            f"change_batch: Reshape {node.label!r} makes {sizes} of {list(was)}, which is baked "
            f"into its constant {target.name!r}: no axis has whole images of a batch of {old}"
        )
    if made[at] < 1:
        return None
    # Each image is reshaped for itself: the axes before the batch hold the same elements.
    if at == changed[0] and sizes[at] == was[at]:
        made[at] = 0
    else:
        made = [size if number == -1 else number for number, size in zip(made, sizes, strict=True)]
        made[at] = -1
    return made


def _resolved(target: Sequence[int], shape: tuple[int, ...]) -> list[int]:
    """Return a target with the sizes that 0 and -1 stand for."""
    sizes = [shape[at] if size == 0 and at < len(shape) else size for at, size in enumerate(target)]
    rest = math.prod(size for size in sizes if size > 0)
    return [math.prod(shape) // rest if size == -1 else size for size in sizes]


def _batch_axis(sizes: Sequence[int], before: int, old: int) -> int | None:
    """Return the axis of a target that starts after so many elements and holds whole batches."""
    product, found = 1, None
    for at, size in enumerate(sizes):
        if product == before and size % old == 0:
            found = at
            if size > 1:
                break
        product *= size
    return found
