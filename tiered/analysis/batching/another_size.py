"""A model for a batch of one size  =>  the model for another size, or for any"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import onnx

from tiered.analysis.batching.batch_edits import Rewriting
from tiered.analysis.batching.following import Following
from tiered.analysis.batching.rules import rule_of
from tiered.analysis.batching.sample_facts import BatchRows, Columns, Fact, Listed
from tiered.graph import InterfaceMap, Model, TensorType, Value
from tiered.graph.core.dim_names import EXPECTED, is_dim
from tiered.graph.core.interface_map import BatchMap, ListMap
from tiered.graph.io.protos import shapes_of_type
from tiered.support.errors import ShapeError, UsageError

_TRIALS: Final = (2, 3)
"""Multiples of the present size that shape inference has to accept."""


def rebatch(model: Model, places: Mapping[Value, int], size: int | str) -> None:
    """Give a batch of a fixed size another size, or a name.

    The analysis follows the batch from the inputs through every operator. Constants that bake its
    size are rewritten; each sample of the result is computed as the model before computes it.

    Args:
        model: the model, edited in place.
        places: the axis of the batch, by input; all have the same size there.
        size: the new size, or a name for a dynamic one.

    Raises:
        UsageError: the size is no name of a dim, or the batch is empty.
        ShapeError: an operator mixes samples or cannot be followed; the message names it.
    """
    value, axis = next(iter(places.items()))
    old = value.dim(axis)
    assert isinstance(old, int)
    if not is_dim(size):
        raise UsageError(f"change_batch: {size!r} is no size; {EXPECTED}")
    if not old:
        raise UsageError(f"change_batch: the batch of {value.name!r} is empty")
    name = size if isinstance(size, str) else _free_name(model)
    state = Following(model, places, old, _free_name(model, taken=name), rule_of)
    try:
        state.run()
        with model.transaction():
            rewriting = Rewriting(model, value, axis, old)
            for edit in state.edits:
                edit(rewriting)
            _declare(state, name)
            _check(model, name, old)
            if isinstance(size, int):
                model.set_input_shapes({}, {name: size})
                rewriting.fix(size)
            _note(state)
    finally:
        state.close()


def _free_name(model: Model, taken: str = "") -> str:
    dims = {dim for value in model.main.inputs for dim in value.shape or ()}
    return next(name for name in _names() if name not in dims and name != taken)


def _names() -> Iterator[str]:
    yield "batch"
    number = 1
    while True:
        yield f"batch_{number}"
        number += 1


# --- declarations ---------------------------------------------------------------------------------


def _declare(state: Following, name: str) -> None:
    """Declare the batch as a named dim wherever the file declares its size."""
    model = state.model
    for graph in [graph for graph in model.graphs() if not graph.root.is_function]:
        inputs = [
            _with_batch(info, state.facts.get(value), name)
            for value, info in zip(graph.inputs, graph.input_infos, strict=True)
        ]
        graph.set_graph_inputs(graph.inputs, inputs)
        outputs = [
            _with_batch(info, state.outputs.get((graph, at)), name)
            for at, info in enumerate(graph.output_infos)
        ]
        graph.set_graph_outputs(graph.outputs, outputs)
        graph.set_declarations(
            [
                (value, _with_batch(info, state.facts.get(value), name))
                for value, info in graph.declarations
            ]
        )
    model.forget_types()
    model.refresh_types()
    main = model.main
    for value, info in zip(main.outputs, main.output_infos, strict=True):
        is_open = any(dim.WhichOneof("value") is None for dim in info.type.tensor_type.shape.dim)
        known = value.type
        if is_open and isinstance(known, TensorType) and known.shape is not None:
            dims = tuple(dim if _is_plain(dim) else None for dim in known.shape)
            main.set_declared_type(value, TensorType(known.dtype, dims))


def _with_batch(info: onnx.ValueInfoProto, fact: Fact | None, name: str) -> onnx.ValueInfoProto:
    if not isinstance(fact, BatchRows | Listed):
        return info
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    for shape in shapes_of_type(copy.type):
        if fact.axis < len(shape.dim):
            dim = shape.dim[fact.axis]
            # A list has any length, whatever the file says; its name may be that of others.
            if isinstance(fact, BatchRows) or dim.HasField("dim_value"):
                dim.Clear()
            if isinstance(fact, BatchRows) and fact.is_whole:
                dim.dim_param = name
    return copy


def _is_plain(dim: int | str | None) -> bool:
    return isinstance(dim, int) or (isinstance(dim, str) and not dim.startswith(("=", "unk__")))


def _check(model: Model, name: str, old: int) -> None:
    """Check that shape inference accepts other sizes.

    Raises:
        ShapeError: it does not.
    """
    for factor in _TRIALS:
        copy = model.copy()
        try:
            copy.set_input_shapes({}, {name: old * factor})
        except ShapeError as error:
            raise ShapeError(f"change_batch: {error}") from error
        finally:
            copy.close()


def _note(state: Following) -> None:
    """Record how the samples of the new interface correspond to those before."""
    main = state.model.main
    outputs: dict[str, tuple[int, int, int] | ListMap | None] = {}
    for at, value in enumerate(main.outputs):
        fact = state.outputs.get((main, at))
        outputs[value.name] = _place(fact)
    inputs = {value.name: axis for value, axis in state.places.items()}
    batch = BatchMap(state.old, inputs, outputs)
    state.model.note_interface(InterfaceMap(batch=batch))


def _place(fact: Fact | None) -> tuple[int, int, int] | ListMap | None:
    if isinstance(fact, Listed):
        steps = fact.step.steps if isinstance(fact.step, Columns) else (fact.step,)
        return ListMap(fact.axis, tuple([int(str(step)) for step in steps]))
    if not isinstance(fact, BatchRows):
        return None
    # An unknown factor is -1: it follows from the size of the output.
    outer, inner = (size if isinstance(size, int) else -1 for size in (fact.outer, fact.inner))
    return fact.axis, outer, inner
