"""What a file says of its nodes and values is still said of those that survive -O3.

The models get what torch's dynamo exporter writes: metadata and a doc string on every node,
metadata on every value_info, and names.
"""

from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest

from tiered import Model, Node, optimize_model
from tiered.graph.core.provenance import ORIGINS

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
SCOPES = "pkg.torch.onnx.name_scopes"


def described(path: Path) -> onnx.ModelProto:
    """Return a model of which every part says something of itself."""
    proto = onnx.shape_inference.infer_shapes(onnx.load(path))
    proto.metadata_props.add(key="exporter", value="dynamo")
    proto.doc_string, proto.graph.doc_string = "the model", "the graph"
    for number, node in enumerate(proto.graph.node):
        node.name = node.name or f"node_{number}"
        node.doc_string = f"line {number}"
        for key, text in ((SCOPES, f"layer.{number}"), ("namespace", f": {node.op_type}")):
            node.metadata_props.add(key=key, value=text)
    for info in proto.graph.value_info:
        info.doc_string = f"about {info.name}"
        info.metadata_props.add(key="kind", value="activation")
    return proto


def _told(proto: onnx.NodeProto | onnx.ModelProto | onnx.ValueInfoProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in proto.metadata_props}


def _scopes(nodes: Iterable[Node], sources: dict[Node, onnx.NodeProto]) -> set[str]:
    return {_told(sources[node])[SCOPES] for node in nodes}


@pytest.mark.parametrize("name", ["bert.ts", "tf_nhwc_conv.direct"])
def test_what_is_said_of_nodes_and_values_survives(name: str) -> None:
    proto = described(MODELS / f"{name}.onnx")
    view = Model.from_proto(proto)
    sources: dict[Node, onnx.NodeProto] = {}
    for node in view.main.nodes:
        sources[node] = onnx.NodeProto()
        sources[node].CopyFrom(node.proto)
    optimize_model(view, opt_level=3, config={"provenance.metadata": True})
    result = view.to_proto()
    assert _told(result) == _told(proto)
    assert (result.doc_string, result.graph.doc_string) == ("the model", "the graph")
    infos = {info.name: info for info in proto.graph.value_info}
    kept = {info.name: info for info in result.graph.value_info}
    made = 0
    for node in view.main.nodes:
        if node in sources:
            source = sources[node]
            assert (node.name, node.proto.doc_string) == (source.name, source.doc_string)
            assert _told(node.proto) == _told(source)
            for output in source.output:
                if output in node.proto.output:  # and does not bear the name of a graph output now
                    assert kept.get(output) == infos.get(output)
        else:
            made += 1
            told, origins = _told(node.proto), node.origins
            assert origins
            assert set(origins) <= set(sources)
            assert told[ORIGINS].split("; ")[0] == origins[0].name
            assert set(told[SCOPES].split("; ")) <= _scopes(origins, sources)
    assert made > 0
