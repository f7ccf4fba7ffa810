"""Inputs, outputs and inner tensors  =>  the same tensors under other names"""

from collections.abc import Mapping

from tiered import (
    InterfaceMap,
    Model,
    PassContext,
    Skip,
    TensorType,
    Unable,
    UsageError,
    Value,
    module_pass,
)
from tiered.rewriter.idioms.main_tensors import make_room, tensor_named


@module_pass(opt_level=None, changes_interface=True)
def rename(
    model: Model,
    ctx: PassContext,
    *,
    tensors: dict[str, str] | None = None,
    dims: dict[str, str] | None = None,
) -> Skip | None:
    """Rename tensors of the main graph, inputs and outputs above all, and named dims of inputs.

    Two names may be exchanged. A tensor that is in the way gets a fresh name if it is an inner one,
    of the main graph or of a body; a remark names it. Two dims do not become one.

    Args:
        tensors: the new name by the present one.
        dims: the new name of a dim by its present one; it changes in the whole model.

    Raises:
        UsageError: there is no such tensor or dim, or a new name is that of an input or output, or
            of another dim.
        ModelError: metadata or training graphs use the present name.
    """
    if not tensors and not dims:
        return Unable("no names are given")
    before = model.mark()
    _rename_tensors(model, ctx, tensors or {})
    if dims:
        _check_dims(model, dims)
        model.set_input_shapes({}, dims)
    return None if model.changed_since(before) else Skip("the names are these already")


def _rename_tensors(model: Model, ctx: PassContext, names: Mapping[str, str]) -> None:
    graph, renamed = model.main, model.interface_since().tensors  # in this run
    found = {
        tensor_named(model, old, "rename"): new
        for old, new in names.items()
        if old in graph.values or renamed.get(new, ("", None))[0] != old
    }
    changed = {value: new for value, new in found.items() if value.name != new}
    _check(model, found)
    old_names = {value.name: new for value, new in changed.items()}
    for value in changed:
        # By way of a fresh name, as another tensor may still have the new one.
        graph.rename_value(value, model.names.fresh(value.name))
    for value, new in changed.items():
        for other in make_room(model, new, model.names.fresh):
            ctx.remark(f"the inner tensor {new!r} is {other!r} now")
        graph.rename_value(value, new)
    model.note_interface(InterfaceMap({new: (old, None) for old, new in old_names.items()}))


def _check(model: Model, found: Mapping[Value, str]) -> None:
    if len({*found.values()}) < len(found):
        raise UsageError("rename: two tensors would have one name")
    for new in found.values():
        if not new:
            raise UsageError("rename: a tensor cannot have an empty name")
        other = model.main.values.get(new)
        is_shown = other is not None and (other.is_graph_input or other.is_graph_output)
        if other not in found and is_shown:
            raise UsageError(f"rename: {new!r} is an input or output of the model; rename it too")


def _check_dims(model: Model, names: Mapping[str, str]) -> None:
    """Raise if a dim would get the name of another one, which would make them equal.

    Raises:
        UsageError: it would.
    """
    kinds = (value.type for graph in model.graphs() for value in graph.values.values())
    shapes = (kind.shape or () for kind in kinds if isinstance(kind, TensorType))
    known = {dim for shape in shapes for dim in shape if isinstance(dim, str)}
    kept = known - names.keys()
    for old, new in names.items():
        others = kept | {other for name, other in names.items() if name != old}
        if old != new and new in others:
            raise UsageError(
                f"rename: {new!r} is another dim of the model; {old!r} would be equal to it: "
                "choose another name, or rename it too"
            )
