"""merge: several models as one, outputs of earlier ones as inputs of later ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import onnx

from tiered.graph import Model, Value
from tiered.graph.core.lazy_bytes import is_stored, location_of
from tiered.graph.core.node import domain_of
from tiered.graph.core.tensor import Tensor
from tiered.graph.edits.interface_edits import is_implied
from tiered.graph.io.export import export_model
from tiered.graph.io.protos import nodes_of
from tiered.graph.io.save import tensors_of
from tiered.graph.queries.structural_hash import value_digests
from tiered.pipeline.compose.connections import Connections, joints
from tiered.pipeline.compose.extraction import AnyModel, view_of
from tiered.pipeline.compose.merged_dims import equal_dims, reconcile_dims
from tiered.pipeline.compose.merged_names import rename_nodes, rename_tensors
from tiered.pipeline.compose.split_mark import finish, joined, mark_of
from tiered.support.errors import ModelError, OpsetError, UsageError

_FIELDS: Final = (
    *("node", "initializer", "sparse_initializer", "value_info", "quantization_annotation"),
    *("output", "metadata_props"),
)
"""What the main graph of the second model adds to that of the first."""


def merge(
    *models: AnyModel,
    connect: Connections | None = None,
    prefix: str = "",
    keep: bool = False,
) -> onnx.ModelProto:
    """Return models as one model: outputs of earlier ones become inputs of later ones.

    The inputs of the result are those that are not connected; inputs of equal name and type are one
    input. Its outputs are those that are not connected, the first model's first. Names of inner
    tensors, nodes and functions that are taken become new ones; weights of equal name and content
    are one. Dims of tensors that become one are the same dim, and so are others of equal name, but
    where such a tensor gives the dim of the first model a size or another name. The model of the
    lower opset is converted to the higher one; where that is impossible, the other one to the
    lower. Parts of one `split` are the model again: its outputs at a cut stay outputs.

    Args:
        models: two or more files, ModelProtos or Models, which are not changed.
        connect: the input of the second model by output of the first, or a list of inputs; "names"
            connects those of equal name, if there are any. By default those of equal name, and
            it is an error if the models have neither these nor inputs in common.
        prefix: for the names of the second model: of tensors that are not connected, of nodes and
            of dims that are not those of connected tensors.
        keep: connected outputs stay outputs.

    Raises:
        UsageError: fewer than two models, there is no such output or input, or nothing connects.
        ModelError: connected tensors have different types, a dim would have two sizes, both models
            have an output of one name, or their versions cannot be reconciled.
    """
    if len(models) < 2:
        raise UsageError(f"merge takes two models or more, not {len(models)}")
    if len(models) > 2 and (isinstance(connect, Mapping) or prefix):
        raise UsageError("names to connect and a prefix are for two models; merge them two by two")
    merged = view_of(models[0])
    for other in models[1:]:
        merged = merged_model(
            merged, view_of(other), connect=connect, prefix=prefix, keep=keep
        ).model
    return merged.to_proto()


class Merged(NamedTuple):
    """Two models as one.

    Attributes:
        model: the merged model.
        names: the names in it of the inputs and outputs of the second model.
    """

    model: Model
    names: dict[str, str]


def merged_model(
    first: Model,
    second: Model,
    *,
    connect: Connections | None = None,
    prefix: str = "",
    keep: bool = False,
) -> Merged:
    """Return two models as one; both are changed. For arguments and errors see `merge`."""
    mark = joined(mark_of(first), mark_of(second))
    _reconcile_opsets(first, second)
    for model in (first, second):
        model.refresh_types()
    common = joints(first, second, connect, prefix=prefix, may_be_apart=mark is not None)
    sources = {target.name: source.name for source, target in common.connected}
    shown = {value: value.name for value in (*second.main.inputs, *second.main.outputs)}
    dims = equal_dims(common)
    known = {*rename_tensors(first, second, common, prefix)}
    protos = [export_model(model, is_bare=True) for model in (first, second)]
    for proto, model in zip(protos, (first, second), strict=True):
        if first.folder != second.folder:
            _locate_weights(proto, model.folder)
    reconcile_dims(protos[0], protos[1], dims, prefix)
    rename_nodes(protos[1], {node.name for node in nodes_of(protos[0])}, prefix)
    _add_functions(*protos)
    inner = [
        source
        for source, _ in common.connected
        if not keep and (mark is None or not mark.keeps(source.name))
    ]
    untold = {value.name for value in inner if not is_implied(value)}
    _append(*protos, dropped={value.name for value in inner}, untold=untold, known=known)
    made = Model.from_proto(protos[0], folder=first.folder)
    finish(made, mark, keep=keep)
    made.refresh_types()
    names = {old: sources.get(old, value.name) for value, old in shown.items()}
    return Merged(made, names)


def has_merged(
    model: Model,
    second: Model,
    *,
    connect: Connections | None = None,
    prefix: str = "",
    keep: bool = False,
) -> bool:
    """Return whether a model is one that the second one was merged into: it computes its outputs.

    For arguments see `merge`.
    """
    graph, other = model.main, second.main
    sources = {value.name: value.name for value in other.inputs}
    if isinstance(connect, Mapping):
        sources = {
            name: source
            for source, names in connect.items()
            for name in ((names,) if isinstance(names, str) else names)
        }
    shown, known = {value.name: value for value in graph.outputs}, value_digests(graph)
    if not keep and not shown.keys().isdisjoint(sources.values()):
        return False
    given: dict[Value, str] = {}
    for value in other.inputs:
        name = sources.get(value.name, prefix + value.name)
        found = graph.values.get(name)
        if found is None:
            return False
        given[value] = known[found]
    made = value_digests(other, given)
    pairs = [(value, shown.get(prefix + value.name)) for value in other.outputs]
    return all(found is not None and made[value] == known[found] for value, found in pairs)


# --- versions and functions -----------------------------------------------------------------------


def _reconcile_opsets(first: Model, second: Model) -> None:
    """Convert the model of the lower opset to the higher one; else the other way around.

    Raises:
        ModelError: neither is possible, or a domain has two versions.
    """
    for domain in sorted(first.opset_imports.keys() & second.opset_imports.keys() - {""}):
        versions = first.opset(domain), second.opset(domain)
        if versions[0] != versions[1]:
            raise ModelError(f"the models import {domain} at {versions[0]} and {versions[1]}")
    low, high = sorted((first, second), key=lambda model: model.opset())
    if not low.opset() or low.opset() == high.opset():
        return
    try:
        low.convert_opset(high.opset())
    except OpsetError as error:
        try:
            high.convert_opset(low.opset())
        except OpsetError as other:
            raise ModelError(f"the opsets cannot be reconciled: {error}; {other}") from other


def _add_functions(first: onnx.ModelProto, second: onnx.ModelProto) -> None:
    """Add the functions of the second model; one with a taken id and another body is renamed."""
    own = {(f.domain, f.name, f.overload): f for f in first.functions}
    for function in second.functions:
        key = function.domain, function.name, function.overload
        if key not in own:
            continue
        if _bytes(own[key]) == _bytes(function):
            continue
        name, number = function.name, 1
        ids = {*own, *((f.domain, f.name, f.overload) for f in second.functions)}
        while (key[0], name, key[2]) in ids:
            name, number = f"{key[1]}_{number}", number + 1
        function.name = name
        for node in nodes_of(second):
            if (domain_of(node.domain), node.op_type, node.overload) == (
                domain_of(key[0]), key[1], key[2]
            ):  # fmt: skip
                node.op_type = name
    first.functions.extend(f for f in second.functions if (f.domain, f.name, f.overload) not in own)


def _bytes(proto: onnx.FunctionProto) -> bytes:
    return bytes(proto.SerializeToString(deterministic=True))


# --- contents -------------------------------------------------------------------------------------


def _append(
    first: onnx.ModelProto,
    second: onnx.ModelProto,
    *,
    dropped: set[str],
    untold: set[str],
    known: set[str],
) -> None:
    """Add the contents of the second model to the first.

    Args:
        first: the first model.
        second: the second model, with its final names.
        dropped: outputs of the first model that are no outputs any more.
        untold: those of `dropped` whose types no operator implies.
        known: tensors of the second model that the first one has.
    """
    if second.training_info:
        raise ModelError("the second model has training graphs, which cannot be merged")
    graph, other = first.graph, second.graph
    missing = untold - {info.name for info in graph.value_info}
    graph.value_info.extend(info for info in graph.output if info.name in missing)
    _keep(graph.output, lambda info: info.name not in dropped)
    graph.input.extend(info for info in other.input if info.name not in known)
    shared = {tensor.name for tensor in other.initializer if tensor.name in known}
    _keep(other.initializer, lambda tensor: tensor.name not in shared)
    _keep(other.value_info, lambda info: info.name not in known)
    annotated = {each.tensor_name for each in graph.quantization_annotation}
    shown = [each for each in other.quantization_annotation if each.tensor_name not in annotated]
    del other.quantization_annotation[:]
    other.quantization_annotation.extend(shown)
    for field in _FIELDS:
        getattr(graph, field).extend(getattr(other, field))
    first.ir_version = max(first.ir_version, second.ir_version)
    imported = {domain_of(entry.domain) for entry in first.opset_import}
    first.opset_import.extend(
        entry for entry in second.opset_import if domain_of(entry.domain) not in imported
    )
    keys = {entry.key for entry in first.metadata_props}
    first.metadata_props.extend(e for e in second.metadata_props if e.key not in keys)


def _keep(entries: object, is_kept: Callable[[onnx.ValueInfoProto], bool]) -> None:
    """Remove the entries of a repeated field that are not kept."""
    kept = [entry for entry in entries if is_kept(entry)]  # type: ignore[attr-defined]  # a field
    del entries[:]  # type: ignore[attr-defined]  # of a proto
    entries.extend(kept)  # type: ignore[attr-defined]  # which is repeated


def _locate_weights(proto: onnx.ModelProto, folder: str) -> None:
    """Let external data be found from any folder; no byte is read."""
    for tensor in tensors_of(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL or is_stored(tensor):
            continue
        path, offset, length = Tensor(tensor, folder=folder).external_span()
        del tensor.external_data[:]
        place = location_of(path, os.stat(path))
        for key, value in (("location", place), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
