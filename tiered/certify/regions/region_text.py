"""Regions as ONNX text, and nodes of such text; constants by digest."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

import onnx
from google.protobuf.message import DecodeError

from tiered.certify.problem import Problem, Side
from tiered.graph.core.tensor import Tensor
from tiered.support.errors import words_of


def digest_of(tensor: Tensor) -> str:
    """Return a digest of the dtype, the dims and the bits of a constant."""
    return hashlib.blake2b(repr(tensor.key()).encode(), digest_size=16).hexdigest()


def packed(tensor: Tensor) -> str:
    """Return a constant as an ONNX tensor in base 64."""
    proto = onnx.numpy_helper.from_array(tensor.dense())
    return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


def unpacked(text: str) -> Tensor:
    """Return the constant of `packed`.

    Raises:
        ValueError: it is none.
    """
    proto = onnx.TensorProto()
    try:
        proto.ParseFromString(base64.b64decode(text, validate=True))
        return Tensor(None, onnx.numpy_helper.to_array(proto))
    except (DecodeError, TypeError, ValueError) as error:
        raise ValueError(f"no constant: {error}") from error


def text_of(problem: Problem, side: Side) -> str:
    """Return a side of a problem as text."""
    graph = onnx.GraphProto(name="region")
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in problem.borders)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in problem.outputs)
    graph.node.extend(side.nodes)
    return str(onnx.printer.to_text(graph))


def nodes_of(text: str) -> Sequence[onnx.NodeProto]:
    """Return the nodes of a side.

    Raises:
        ValueError: it is no text of a graph.
    """
    try:
        return list(onnx.parser.parse_graph(text).node)
    except onnx.parser.ParseError as error:
        raise ValueError(f"no region: {' '.join(words_of(error).split())}") from error


def line_of(node: onnx.NodeProto) -> str:
    """Return a node as text, without its name and metadata; floats are rounded there."""
    graph = onnx.GraphProto(name="g", node=[_bare(node)])
    return str(onnx.printer.to_text(graph)).partition("{")[2].rpartition("}")[0].strip()


def content_of(node: onnx.NodeProto) -> bytes:
    """Return all that a node is, without its name and metadata."""
    return bytes(_bare(node).SerializeToString(deterministic=True))


def _bare(node: onnx.NodeProto) -> onnx.NodeProto:
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    for field in ("name", "doc_string", "metadata_props"):
        bare.ClearField(field)
    return bare
