"""extract and split: parts of a model between named tensors, as models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import onnx

from tiered.graph import Model, Node, Value
from tiered.graph.core.types import read_type
from tiered.pipeline.compose.split_mark import mark_text, write_marks
from tiered.pipeline.named_passes import get_pass
from tiered.rewriter.idioms.main_tensors import needed_nodes, tensor_named
from tiered.support.errors import UsageError

AnyModel = str | os.PathLike[str] | onnx.ModelProto | Model


def extract(
    model: AnyModel, inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> onnx.ModelProto:
    """Return the part of a model between tensors of its main graph, as the pass `extract` does.

    Args:
        model: a file, or a ModelProto or Model, which is not changed.
        inputs: tensors that become the inputs; the inputs of the model that are still needed
            follow.
        outputs: tensors that become the outputs; by default those that depend on `inputs`.

    Raises:
        ModelError: the model is malformed, or the file cannot be read.
        UsageError: there is no such tensor, its type is unknown, it is a weight, or no output
            depends on an input.
    """
    names = _names("inputs", inputs), _names("outputs", outputs)
    return _part(view_of(model), *names).to_proto()


def split(model: AnyModel, at: Iterable[str | Sequence[str]]) -> list[onnx.ModelProto]:
    """Return consecutive parts of a model, cut at tensors of its main graph.

    A part returns the tensors of its cut, and no later part computes what an earlier one does. A
    part also returns what later parts read of it, and its metadata have a mark, so that
    `merge(*parts)` is the model again, without nodes that no output needs. Inputs that no part
    reads are inputs of the first one.

    Args:
        model: a file, or a ModelProto or Model, which is not changed.
        at: the tensors, from the inputs to the outputs; a list of names is one cut.

    Raises:
        ModelError: the model is malformed, or the file cannot be read.
        UsageError: there is no such tensor, its type is unknown, it is a weight, or a cut leaves
            nothing to compute.
    """
    return [part.to_proto() for part in split_models(view_of(model), at)]


def split_models(view: Model, at: Iterable[str | Sequence[str]]) -> list[Model]:
    """Return consecutive parts of a model; weights on disk stay there. See `split`."""
    get_pass("infer_shapes").apply(view)
    names = [_names("at", (cut,) if isinstance(cut, str) else cut) for cut in at]
    cuts = [[tensor_named(view, name, "split") for name in cut] for cut in names]
    if not cuts:
        raise UsageError("split takes the name of at least one tensor to cut at")
    stages = _stages(view, cuts)
    for stage, cut in zip(stages, [*names, ["the outputs"]], strict=True):
        if not stage:
            raise UsageError(f"split: no node is left to compute {', '.join(cut)}")
    parts = [
        _part(view.copy(), inputs, outputs) for inputs, outputs in _borders(view, cuts, stages)
    ]
    _add_unread(view, parts)
    inputs = [value.name for value in view.main.inputs]
    outputs = [value.name for value in view.main.outputs]
    write_marks(parts, inputs, outputs, mark_text(view))
    return parts


def _add_unread(view: Model, parts: Sequence[Model]) -> None:
    """Give the first part the inputs of the model that no part reads."""
    read = {value.name for part in parts for value in part.main.inputs}
    graph = parts[0].main
    for value, info in zip(view.main.inputs, view.main.input_infos, strict=True):
        if value.name in read:
            continue
        if value.default is None:
            graph.add_input(value.name, read_type(info.type))
        else:
            graph.mark_input(graph.add_constant(value.default, value.name))


def view_of(model: AnyModel) -> Model:
    """Return a view of a model that may be edited.

    Raises:
        ModelError: the model is malformed, or the file cannot be read.
        UsageError: it is no model.
    """
    if isinstance(model, Model):
        return model.copy()
    if isinstance(model, onnx.ModelProto):
        return Model.from_proto(model)
    if isinstance(model, str | os.PathLike):
        return Model.load(model)
    raise UsageError(f"expected a path, an onnx.ModelProto or a Model, not {type(model).__name__}")


def _names(what: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str):
        raise UsageError(f"{what} takes a list of names, not {names!r}")
    return list(names)


def _part(view: Model, inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    get_pass("extract", inputs=list(inputs), outputs=list(outputs)).apply(view)
    return view


def _stages(model: Model, cuts: Sequence[Sequence[Value]]) -> list[set[Node]]:
    """Return the nodes of each part: each node is in the first part that needs it."""
    stages: list[set[Node]] = []
    taken: set[Node] = set()
    for wanted in (*cuts, model.main.outputs):
        nodes = {node for node in needed_nodes(wanted) - taken if not _is_constant(node)}
        stages.append(nodes)
        taken |= nodes
    return stages


def _is_constant(node: Node) -> bool:
    return all(value is None or value.is_constant for value in node.outputs)


def _borders(
    model: Model, cuts: Sequence[Sequence[Value]], stages: Sequence[set[Node]]
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the names of the inputs and outputs of each part."""
    outputs = list(dict.fromkeys(model.main.outputs))
    order = {node: place for place, node in enumerate(model.main.topological_order())}
    for at, stage in enumerate(stages):
        later = set[Value]().union(*(node.reads for other in stages[at + 1 :] for node in other))
        nodes = sorted(stage, key=order.__getitem__)
        made = [value for node in nodes for value in node.outputs if value is not None]
        read = dict.fromkeys(value for node in nodes for value in node.reads)
        own = [value for value in outputs if value in made]
        if at == len(stages) - 1:
            own = [value for value in outputs if value in made or _is_given(value)]
        inputs = [
            value.name
            for value in read
            if value.producer is not None and value.producer not in stage and not value.is_constant
        ]
        wanted = later.union(*cuts[at : at + 1])
        passed = [value for value in made if value in wanted and value not in own]
        yield inputs, [value.name for value in (*passed, *own)]


def _is_given(value: Value) -> bool:
    """Return whether no part computes a value: an input, or a constant."""
    return value.producer is None or value.is_constant
