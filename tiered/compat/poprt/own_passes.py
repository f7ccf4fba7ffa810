"""Passes of PopRT that are pipelines here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import tiered
from tiered.context import PassContext
from tiered.graph import Model
from tiered.graph.core.marks import METADATA_SINCE
from tiered.support.errors import UsageError, did_you_mean

MARKING: Final = frozenset({"auto_insert_remap", "overlap_io", "rewrite_annotated_ops"})
"""Passes that write metadata of nodes, inputs and outputs."""


def apply_ir_pass(passes: Iterable[str] | str = ()) -> tiered.Pass:
    """Return the pipeline of some passes."""
    names = passes.split(",") if isinstance(passes, str) else list(passes)
    return tiered.Sequential([each.strip() for each in names], name="apply_ir_pass")


def const_input_shape(
    const_input_shape: Mapping[str, Sequence[int | str]] | None = None,
    batch_size: int | None = None,
    batch_axis: int | None = None,
    **more: Any,
) -> tiered.Pass:
    """Return `const_input_shape`, for some inputs by name, and for one axis of all inputs.

    Args:
        const_input_shape: shapes by name.
        batch_size: the size of the axis; None leaves it.
        batch_axis: the axis, 0 by default.
        more: options of the pass.

    Raises:
        UsageError: there is an axis without a size; when it runs, that no input has the axis.
    """
    fixed = tiered.get_pass("const_input_shape", shape=dict(const_input_shape or {}), **more)
    if batch_size is None:
        if batch_axis is not None:
            raise UsageError("const_input_shape: batch_axis needs batch_size")
        return fixed
    size, axis = batch_size, batch_axis or 0

    @tiered.module_pass(opt_level=None, changes_interface=True, name="const_batch_axis")
    def set_axis(model: Model, ctx: PassContext) -> None:
        shapes: dict[str, list[int | str]] = {}
        for value in model.main.inputs:
            rank = value.rank
            if value.is_overridable or rank is None or not -rank <= axis < rank:
                continue
            shapes[value.name] = [-1] * rank
            shapes[value.name][axis] = size
        if not shapes:
            raise UsageError(f"const_input_shape: no input has an axis {axis}")
        model.set_input_shapes(shapes)

    passes = [fixed, set_axis] if const_input_shape or more else [set_axis]
    return tiered.Sequential(passes, name="const_input_shape")


def remove_outputs(outputs: Iterable[str] = ()) -> tiered.Pass:
    """Return a pass that removes outputs, and what only they need.

    Raises:
        UsageError: `outputs` is one string; when it runs, that the model has no such output.
    """
    if isinstance(outputs, str):
        raise UsageError(f"remove_outputs takes a list of names, not the string {outputs!r}")
    names = list(dict.fromkeys(outputs))

    @tiered.module_pass(opt_level=None, changes_interface=True, name="remove_outputs")
    def remove(model: Model, ctx: PassContext) -> None:
        known = {value.name: value for value in model.main.outputs}
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known)
                raise UsageError(f"remove_outputs: the model has no output {name!r}{hint}")
        for name in names:
            model.main.remove_output(known[name])

    return tiered.Sequential([remove, "eliminate_deadend"], name="remove_outputs")


def raising_ir(pass_: tiered.Pass) -> tiered.Pass:
    """Return a pass that first raises the IR version to one with metadata of nodes.

    PopRT's own marks are nodes, which every version has.
    """

    @tiered.module_pass(opt_level=None, name="raise_ir_version")
    def raise_version(model: Model, ctx: PassContext) -> None:
        if model.ir_version < METADATA_SINCE:
            ctx.remark(
                f"the IR version {model.ir_version} becomes {METADATA_SINCE}: {pass_.name} writes "
                "metadata of nodes"
            )
            model.set_ir_version(METADATA_SINCE)

    return tiered.Sequential([raise_version, pass_], name=pass_.name)


OWN_PASSES: Final[dict[str, Callable[..., tiered.Pass]]] = {
    **dict.fromkeys(("apply_ir_pass", "ApplyIrPass", "ApplyIRPasses"), apply_ir_pass),
    **dict.fromkeys(("const_input_shape", "ConstInputShape"), const_input_shape),
    **dict.fromkeys(("remove_outputs", "RemoveOutputs"), remove_outputs),
}
"""What makes passes that have other arguments here, by their names."""
