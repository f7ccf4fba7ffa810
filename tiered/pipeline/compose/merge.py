"""merge: several models as one, outputs of earlier ones as inputs of later ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping
from typing import Final, Literal

import onnx

from tiered.errors import ModelError, OpsetError, UsageError, did_you_mean
from tiered.graph import Model, TensorType, Value
from tiered.graph.core.lazy_bytes import is_stored, location_of
from tiered.graph.core.node import domain_of
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import is_compatible
from tiered.graph.io.export import export_model
from tiered.graph.io.protos import graphs_of, nodes_of
from tiered.graph.io.save import tensors_of
from tiered.pipeline.compose.parts import AnyModel, view_of

_FIELDS: Final = (
    *("node", "initializer", "sparse_initializer", "value_info", "quantization_annotation"),
    *("output", "metadata_props"),
)
"""What the main graph of the second model adds to that of the first."""

Connections = Mapping[str, str] | Literal["names"]

Pairs = list[tuple[Value, Value]]
"""Outputs of the first model with the inputs of the second that they become."""


def merge(
    *models: AnyModel,
    connect: Connections | None = None,
    prefix: str = "",
    keep: bool = False,
) -> onnx.ModelProto:
    """Return models as one model: outputs of earlier ones become inputs of later ones.

    The inputs of the result are those that are not connected; inputs of equal name and type are one
    input. Its outputs are those that are not connected, the first model's first. Names of inner
    tensors, nodes and functions that are taken become new ones. Dims of equal name are the same
    dim. The model of the lower opset is converted to the higher one; where that is impossible, the
    other one to the lower.

    Args:
        models: two or more files, ModelProtos or Models, which are not changed.
        connect: the input of the second model by output of the first; "names" connects
            those of equal name, if there are any. By default those of equal name, else the only
            output and the only input.
        prefix: for the names of the second model: of tensors that are not connected, of nodes and
            of dims that are not those of connected tensors.
        keep: connected outputs stay outputs.

    Raises:
        UsageError: fewer than two models, there is no such output or input, or nothing connects.
        ModelError: connected tensors have different types, both models have an output of one name,
            or their versions cannot be reconciled.
    """
    if len(models) < 2:
        raise UsageError(f"merge takes two models or more, not {len(models)}")
    if len(models) > 2 and (isinstance(connect, Mapping) or prefix):
        raise UsageError("names to connect and a prefix are for two models; merge them two by two")
    merged = view_of(models[0])
    for other in models[1:]:
        merged = merged_model(merged, view_of(other), connect=connect, prefix=prefix, keep=keep)
    return merged.to_proto()


def merged_model(
    first: Model,
    second: Model,
    *,
    connect: Connections | None = None,
    prefix: str = "",
    keep: bool = False,
) -> Model:
    """Return two models as one; both are changed. For arguments and errors see `merge`."""
    _reconcile_opsets(first, second)
    for model in (first, second):
        model.refresh_types()
    pairs = _connected(first, second, connect)
    shared = _shared_inputs(first, second, pairs)
    _rename_tensors(first, second, pairs, shared, prefix)
    protos = [export_model(model, is_bare=True) for model in (first, second)]
    for proto, model in zip(protos, (first, second), strict=True):
        if first.folder != second.folder:
            _locate_weights(proto, model.folder)
    _rename_dims(protos[1], _dims(protos[0]), _linked_dims(pairs), prefix)
    _rename_nodes(protos[1], {node.name for node in nodes_of(protos[0])}, prefix)
    _add_functions(*protos)
    connected = {source.name for source, _ in pairs}
    _append(*protos, dropped=set() if keep else connected, known=connected | {*shared})
    made = Model.from_proto(protos[0], folder=first.folder)
    made.refresh_types()
    return made


# --- what is connected ----------------------------------------------------------------------------


def _connected(first: Model, second: Model, connect: Connections | None) -> Pairs:
    outputs = {value.name: value for value in first.main.outputs}
    inputs = {value.name: value for value in second.main.inputs}
    if connect is None:
        connect = {name: name for name in inputs if name in outputs}
        free = [name for name, value in inputs.items() if not value.is_overridable]
        if not connect and len(outputs) == len(free) == 1:
            connect = dict(zip(outputs, free, strict=True))
        if not connect:
            raise UsageError(
                f"nothing connects the models: the first has the outputs {_listed(outputs)}, the "
                f"second the inputs {_listed(inputs)}; name them: connect={{output: input}}, "
                "--map OUT=IN"
            )
    if connect == "names":
        connect = {name: name for name in inputs if name in outputs}
    if not isinstance(connect, Mapping):
        raise UsageError(f"connect takes {{output: input}} or 'names', not {connect!r}")
    if len({*connect.values()}) < len(connect):
        raise UsageError("an input of the second model is connected twice")
    pairs = [
        (_find(outputs, source, "first model has no output"),
         _find(inputs, target, "second model has no input"))
        for source, target in connect.items()
    ]  # fmt: skip
    for source, target in pairs:
        if not is_compatible(source.type, target.type):
            raise ModelError(
                f"output {source.name!r} is {source.type}, it cannot be input {target.name!r}, "
                f"which is {target.type}"
            )
    return pairs


def _find(values: Mapping[str, Value], name: str, what: str) -> Value:
    if name not in values:
        hint = did_you_mean(name, values)
        raise UsageError(f"the {what} {name!r}{hint or f'; it has {_listed(values)}'}")
    return values[name]


def _listed(names: Mapping[str, Value]) -> str:
    return ", ".join(names) or "nothing"


def _shared_inputs(first: Model, second: Model, pairs: Pairs) -> set[str]:
    """Return the names of inputs that both models have.

    Raises:
        ModelError: one has another type in each, or another default.
    """
    own = {value.name: value for value in first.main.inputs}
    targets = {target for _, target in pairs}
    shared = set()
    for value in second.main.inputs:
        other = own.get(value.name)
        if other is None or value in targets:
            continue
        if not is_compatible(value.type, other.type):
            raise ModelError(
                f"both models have an input {value.name!r}: {other.type} and {value.type}; rename "
                "one, or give a prefix"
            )
        keys = [each.default and each.default.key() for each in (other, value)]
        if keys[0] != keys[1]:
            raise ModelError(
                f"both models have an input {value.name!r}, with different defaults; rename one, "
                "or give a prefix"
            )
        shared.add(value.name)
    return shared


# --- names ----------------------------------------------------------------------------------------


def _rename_tensors(
    first: Model, second: Model, pairs: Pairs, shared: set[str], prefix: str
) -> None:
    """Rename the tensors of the second model: connected ones as in the first, others apart."""
    graph, targets = second.main, {target for _, target in pairs}
    if prefix:
        shared.clear()
    own, taken = {*first.main.values}, _names(first)
    wanted: dict[Value, str] = {}
    for value in graph.values.values():
        if value in targets or value.name in shared:
            continue
        name = prefix + value.name
        if name in own and value in graph.outputs:
            raise ModelError(
                f"both models have a tensor {name!r}, which is an output of the second; rename it, "
                "or give a prefix"
            )
        if name in own and value.is_graph_input:
            raise ModelError(
                f"input {name!r} of the second model is a tensor of the first; connect or rename "
                "it, or give a prefix"
            )
        is_shown = value.is_graph_input or value in graph.outputs
        wanted[value] = name if is_shown else _free(name, taken)
        taken.add(wanted[value])
    final = {value: name for value, name in wanted.items() if value.name != name}
    final |= {target: source.name for source, target in pairs}
    # By way of names that no graph has, as one may want the name of another.
    for value in final:
        graph.rename_value(value, second.names.fresh(f"merged {value.name}"))
    held = _names(second)
    for value, name in final.items():
        if name in held:
            _make_room(second, name, taken)
        graph.rename_value(value, name)


def _names(model: Model) -> set[str]:
    """Return the names of the tensors of the main graph and its bodies."""
    graphs = (graph for graph in model.graphs() if not graph.root.is_function)
    return {name for graph in graphs for name in graph.values}


def _make_room(model: Model, name: str, taken: set[str]) -> None:
    """Rename the tensors of bodies that have a name."""
    for graph in model.graphs():
        value = graph.values.get(name)
        if value is not None and graph.owner is not None:
            graph.rename_value(value, _free(name, taken | _names(model)))


def _free(name: str, taken: Container[str]) -> str:
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _rename_nodes(proto: onnx.ModelProto, taken: set[str], prefix: str) -> None:
    for node in nodes_of(proto):
        if node.name:
            node.name = _free(prefix + node.name, taken)
            taken.add(node.name)


def _dims(proto: onnx.ModelProto) -> set[str]:
    return {
        dim.dim_param
        for graph in graphs_of(proto)
        for info in (*graph.input, *graph.output, *graph.value_info)
        for dim in info.type.tensor_type.shape.dim
        if dim.dim_param
    }


def _linked_dims(pairs: Pairs) -> dict[str, str]:
    """Return the dims of the first model by those of the second, of connected tensors."""
    linked: dict[str, str] = {}
    for source, target in pairs:
        if not isinstance(source.type, TensorType) or not isinstance(target.type, TensorType):
            continue
        for old, new in zip(target.type.shape or (), source.type.shape or (), strict=False):
            if isinstance(old, str) and isinstance(new, str):
                linked.setdefault(old, new)
    return linked


def _rename_dims(
    proto: onnx.ModelProto, taken: set[str], linked: Mapping[str, str], prefix: str
) -> None:
    """Rename the dims of the second model: linked ones as in the first."""
    names = {name: linked[name] for name in linked if linked[name] in taken}
    own = _dims(proto)
    for name in sorted(own - names.keys()):
        # A dim with a name that a linked dim has now is another one.
        wanted = prefix + name
        is_other = name in names.values() or (bool(prefix) and wanted in taken)
        names[name] = _free(wanted, taken | own) if is_other else wanted
    for graph in graphs_of(proto):
        for info in (*graph.input, *graph.output, *graph.value_info):
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_param = names[dim.dim_param]


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
    first.functions.extend(
        f for f in second.functions if (f.domain, f.name, f.overload) not in own
    )


def _bytes(proto: onnx.FunctionProto) -> bytes:
    return bytes(proto.SerializeToString(deterministic=True))


# --- contents -------------------------------------------------------------------------------------


def _append(
    first: onnx.ModelProto, second: onnx.ModelProto, *, dropped: set[str], known: set[str]
) -> None:
    """Add the contents of the second model to the first.

    Args:
        first: the first model.
        second: the second model, with its final names.
        dropped: outputs of the first model that are no outputs any more.
        known: inputs of the second model that the first one has.
    """
    if second.training_info:
        raise ModelError("the second model has training graphs, which cannot be merged")
    graph, other = first.graph, second.graph
    _keep(graph.output, lambda info: info.name not in dropped)
    graph.input.extend(info for info in other.input if info.name not in known)
    shared = {tensor.name for tensor in other.initializer if tensor.name in known}
    _keep(other.initializer, lambda tensor: tensor.name not in shared)
    _keep(other.value_info, lambda info: info.name not in known)
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

