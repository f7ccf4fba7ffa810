"""Inputs with one batch size, at any axis  =>  the same inputs with another size, or a named dim"""

from tiered import Model, PassContext, Skip, UsageError, Value, module_pass
from tiered.analysis.batching.another_size import rebatch
from tiered.rewriter.idioms.main_tensors import input_named


@module_pass(
    opt_level=None,
    required=("inline", "infer_shapes"),
    touches=("*",),
    numerics="reassociating",
    changes_interface=True,
)
def change_batch(
    model: Model,
    ctx: PassContext,
    *,
    size: int | str = 16,
    axes: dict[str, int] | None = None,
) -> Skip | None:
    """Change the batch size of inputs: TVM's ChangeBatch.

    `const_batch_size` only gives a size to a dynamic batch. Here the present one may be fixed: the
    batch is followed from the inputs through every operator, and constants that bake its size are
    rewritten, so that each sample is computed as before. What mixes samples is named in the error.

    Args:
        size: the new size, or a name: the batch is dynamic then.
        axes: the axis of the batch by input. By default axis 0 of the first input, and of all that
            have the same size there.

    Raises:
        UsageError: there is no such input or axis, no input has a batch, the size is no size, or
            the batches differ.
        ShapeError: an operator mixes samples, or cannot be followed; the message names it.
    """
    if isinstance(size, int) and size < 1:
        raise UsageError(f"change_batch: a batch cannot have the size {size}")
    places = {input_named(model, name, "change_batch"): at for name, at in (axes or {}).items()}
    places = {value: _axis(value, at) for value, at in (places or _first_axes(model)).items()}
    dims = list(dict.fromkeys(value.dim(at) for value, at in places.items()))
    if not dims:
        raise UsageError("change_batch: no input has a batch; expected one with at least one axis")
    if dims == [size]:
        return Skip("the batch has this size")
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(dims) > 1 and sizes:
        raise UsageError(f"change_batch: the inputs have the batches {', '.join(map(str, dims))}")
    if isinstance(size, str):
        _check_free(model, places, size)
    if sizes:
        rebatch(model, places, size)
    else:
        model.set_input_shapes({value.name: _only(value, at, size) for value, at in places.items()})
    return None


def _check_free(model: Model, places: dict[Value, int], name: str) -> None:
    """Check that no other dim of an input has the name: both would be one size."""
    for value in model.main.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if dim == name and places.get(value) != axis:
                raise UsageError(
                    f"change_batch: dim {axis} of input {value.name!r} is {name!r} too; give the "
                    "batch another name"
                )


def _first_axes(model: Model) -> dict[Value, int]:
    inputs = [value for value in model.main.inputs if not value.is_overridable and value.rank]
    dims = [value.dim(0) for value in inputs]
    return {value: 0 for value, dim in zip(inputs, dims, strict=True) if dim == dims[0]}


def _axis(value: Value, axis: int) -> int:
    rank = value.rank
    if rank is None or not -rank <= axis < rank:
        kind = "an unknown rank" if rank is None else f"rank {rank}"
        raise UsageError(f"change_batch: {value.name!r} has {kind}, and no axis {axis}")
    return axis % rank


def _only(value: Value, axis: int, size: int | str) -> list[int | str]:
    return [size if at == axis else -1 for at in range(value.rank or 0)]
