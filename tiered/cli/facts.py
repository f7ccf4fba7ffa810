"""Facts about a model as plain data: the values of `tiered inspect --json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import TensorType, read_type
from tiered.graph.queries.stored_tensors import stored_tensors
from tiered.graph.shape_inference.symbolic_dims import is_invented
from tiered.pipeline.leftovers import fixing_options

if TYPE_CHECKING:
    from tiered.graph import Graph, Model, Value
    from tiered.targets import Backend


@dataclass(frozen=True)
class Port:
    """An input or output of the model.

    Attributes:
        type: the declared type; "" if the file declares none.
        inferred: the inferred type if it says more than the declared one, else ""; a dim of
            unknown size and name is "?".
        overridable: whether it is an input with a default.
    """

    name: str
    type: str
    inferred: str = ""
    overridable: bool = False


@dataclass(frozen=True)
class Weights:
    """How many constant tensors, elements and bytes a model holds, and by dtype."""

    tensors: int
    elements: int
    bytes: int
    by_dtype: dict[str, dict[str, int]]


@dataclass(frozen=True)
class StoredTensor:
    """One constant tensor."""

    name: str
    type: str
    bytes: int
    external: bool


@dataclass(frozen=True)
class IntegerTensor:
    """A tensor of the main graph that holds integers only, fewer than its dtype has.

    Attributes:
        integers: "int3", "uint5", "bipolar"; "scaled int3" for multiples of a scale.
        low, high: the limits of the integers.
    """

    name: str
    type: str
    integers: str
    low: int
    high: int


@dataclass(frozen=True)
class Taken:
    """How many nodes a backend takes, and how many of each operator it refuses."""

    name: str
    nodes: int
    taken: int
    refused: dict[str, int]


@dataclass(frozen=True)
class ModelFacts:
    """A model as `tiered inspect` shows it.

    Attributes:
        nodes: in the main graph, bodies and local functions together.
        operators: counts by operator for "main", "bodies" and "functions".
        tensors: the constant ones, the largest first.
        dynamic_dims: for each symbol of an input, the places "input[axis]"; "?" is a nameless one.
        fixing: the options that fix all dynamic dims at once, each to 1; "" if there are none.
        backend: the nodes that the backend of --backend supports.
        integers: the tensors with integer types, if they were asked for.
        typed: number of values with a known dtype and rank after inference, out of `values`.
        complaint: why onnx.checker, its inference included, rejects the model; "" if it does not.
    """

    file: str
    producer: str
    ir_version: int
    opsets: dict[str, int]
    inputs: list[Port]
    outputs: list[Port]
    nodes: int
    operators: dict[str, dict[str, int]]
    functions: list[str]
    weights: Weights
    overridable: list[str]
    tensors: list[StoredTensor]
    dynamic_dims: dict[str, list[str]]
    fixing: str
    backend: Taken | None
    integers: list[IntegerTensor]
    typed: int
    values: int
    metadata: dict[str, str]
    complaint: str


def gather_facts(
    model: Model, file: str, backend: Backend | None = None, *, integers: bool = False
) -> ModelFacts:
    """Return the facts about a model, without reading the bytes of tensors but for integers."""
    graphs = list(model.graphs())
    inputs = model.main.inputs
    values = [value for graph in graphs for value in graph.values.values()]
    return ModelFacts(
        file=file,
        producer=_producer(model),
        ir_version=model.ir_version,
        opsets={domain or "ai.onnx": version for domain, version in model.opset_imports.items()},
        inputs=list(map(_port, inputs, model.main.input_infos)),
        outputs=list(map(_port, model.main.outputs, model.main.output_infos)),
        nodes=sum(map(len, graphs)),
        operators=_operators(graphs),
        functions=[_function_name(function.id) for function in model.functions],
        weights=_weights(tensor for _, tensor in stored_tensors(graphs)),
        overridable=[value.name for value in inputs if value.is_overridable],
        tensors=_by_size(graphs),
        dynamic_dims=_dynamic_dims(inputs),
        fixing=fixing_options(model),
        backend=None if backend is None else _taken(model, backend),
        integers=_integers(model) if integers else [],
        typed=sum(map(_is_typed, values)),
        values=len(values),
        metadata={entry.key: entry.value for entry in model.skeleton.metadata_props},
        complaint=model.complaint() or "",
    )


def _taken(model: Model, backend: Backend) -> Taken:
    coverage = backend.coverage(model)
    refused = dict(sorted(coverage.refused.items()))
    return Taken(backend.name, coverage.nodes, coverage.nodes - sum(refused.values()), refused)


def _integers(model: Model) -> list[IntegerTensor]:
    from tiered.graph.intervals.integer_analysis import integer_types

    types, found = model.analysis(integer_types), []
    for value in model.main.values.values():
        known = types[value]
        if known is None or value.is_constant or value.dtype in (None, DataType.BOOL):
            continue
        if known.name != DataType(value.dtype).name.lower():
            row = IntegerTensor(value.name, str(value.type), known.name, known.low, known.high)
            found.append(row)
    return found


def _producer(model: Model) -> str:
    return f"{model.skeleton.producer_name} {model.skeleton.producer_version}".strip()


def _port(value: Value, info: onnx.ValueInfoProto) -> Port:
    declared, known = read_type(info.type), value.type
    if isinstance(known, TensorType) and known.shape is not None:
        dims = [None if is_invented(dim) else dim for dim in known.shape]
        if isinstance(declared, TensorType) and len(declared.shape or ()) == len(dims):
            # A declared dim counts if no size is inferred.
            pairs = zip(dims, declared.shape or (), strict=True)
            dims = [stated if dim is None else dim for dim, stated in pairs]
        known = TensorType(known.dtype, tuple(dims))
    inferred = "" if known == declared or known is None else str(known)
    return Port(value.name, str(declared or ""), inferred, value.is_overridable)


def _operators(graphs: Iterable[Graph]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {
        "main": Counter(),
        "bodies": Counter(),
        "functions": Counter(),
    }
    for graph in graphs:
        kind = "main" if graph.is_main else "functions" if graph.is_function else "bodies"
        counts[kind].update(node.operator for node in graph.nodes)
    return {kind: dict(sorted(found.items(), key=_most_first)) for kind, found in counts.items()}


def _most_first(entry: tuple[str, int]) -> tuple[int, str]:
    name, count = entry
    return -count, name


def _function_name(key: tuple[str, str, str]) -> str:
    domain, name, overload = key
    return f"{domain}::{name}:{overload}" if overload else f"{domain}::{name}"


def _weights(tensors: Iterable[Tensor]) -> Weights:
    by_dtype: dict[str, dict[str, int]] = {}
    for tensor in tensors:
        row = by_dtype.setdefault(_dtype(tensor), {"tensors": 0, "elements": 0, "bytes": 0})
        row["tensors"] += 1
        row["elements"] += tensor.size
        row["bytes"] += tensor.nbytes
    total = {
        key: sum(row[key] for row in by_dtype.values()) for key in ("tensors", "elements", "bytes")
    }
    return Weights(**total, by_dtype=dict(sorted(by_dtype.items())))


def _dtype(tensor: Tensor) -> str:
    return onnx.TensorProto.DataType.Name(tensor.dtype).lower()


def _by_size(graphs: Iterable[Graph]) -> list[StoredTensor]:
    found = [
        StoredTensor(
            name, str(TensorType(tensor.dtype, tensor.shape)), tensor.nbytes, tensor.is_external
        )
        for name, tensor in stored_tensors(graphs)
    ]
    return sorted(found, key=lambda tensor: (-tensor.bytes, tensor.name))


def _dynamic_dims(inputs: Iterable[Value]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for value in inputs:
        for axis, dim in enumerate(value.shape or ()):
            if not isinstance(dim, int):
                name = "?" if dim is None or is_invented(dim) else dim
                places.setdefault(name, []).append(f"{value.name}[{axis}]")
    return places


def _is_typed(value: Value) -> bool:
    return value.type is not None and (
        not isinstance(value.type, TensorType) or value.rank is not None
    )


def declared_types(values: Iterable[Value], infos: Iterable[onnx.ValueInfoProto]) -> dict[str, str]:
    """Return the types by name that a file declares for its inputs or outputs."""
    pairs = zip(values, infos, strict=True)
    return {value.name: str(read_type(info.type)) for value, info in pairs}
