"""Model files as text: what `onnx.printer` shows, and the facts that it leaves out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import onnx

from tiered.graph import DataType, Model
from tiered.graph.io.save import tensors_of
from tiered.pipeline.instruments.onnx_text import model_text


def file_text(path: Path) -> str:
    """Return a model file as text, with metadata and the places of its weights.

    The text form of ONNX has neither the metadata nor weights that are external or sparse.
    """
    proto = onnx.load(path, load_external_data=False)
    return "\n".join([model_text(Model.load(path)).rstrip(), *_metadata(proto), *_weights(proto)])


def _metadata(proto: onnx.ModelProto) -> Iterator[str]:
    for kind, values in (("input", proto.graph.input), ("output", proto.graph.output)):
        for value in values:
            for entry in value.metadata_props:
                yield f"// metadata of {kind} {value.name!r}: {entry.key} = {entry.value}"
    graphs = [(proto.graph.name, proto.graph.node), *((f.name, f.node) for f in proto.functions)]
    for graph, nodes in graphs:
        for node in nodes:
            name = node.name or next(filter(None, node.output), "")
            for entry in node.metadata_props:
                of = f"{node.op_type} {name!r} in {graph}"
                yield f"// metadata of {of}: {entry.key} = {entry.value}"


def _weights(proto: onnx.ModelProto) -> Iterator[str]:
    for tensor in tensors_of(proto):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            facts = {entry.key: entry.value for entry in tensor.external_data}
            yield f"// weight {tensor.name!r}: {facts['length']} bytes in {facts['location']}"
    for sparse in proto.graph.sparse_initializer:
        dtype = DataType(sparse.values.data_type).name.lower()
        dims, count = ",".join(map(str, sparse.dims)), sparse.values.dims[0]
        stored = f"{count} of {math.prod(sparse.dims)} elements"
        yield f"// weight {sparse.values.name!r}: {dtype}[{dims}], sparse, {stored}"
