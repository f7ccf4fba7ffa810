"""A model with weights of several sizes, one of them in a body; and where a file has them."""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tiered.graph.io.save import tensors_of
from tiered.testing import parse

TEXT = """(float[400] x, bool c) => (float[400] y) <float[1] one = {1}> {
    a = Add(x, w)  b = Mul(a, v)  d = Add(b, one)
    y = If(c) <then_branch = t () => (float[400] p) { p = Add(d, inner) },
               else_branch = e () => (float[400] q) { q = Neg(d) }> }"""


def model_with_weights() -> onnx.ModelProto:
    """Return a model with w, v and inner of 1,600 bytes, and one of 4."""
    declared = {name: f"float[400] {name} = {{{','.join(['1'] * 400)}}}" for name in "wvi"}
    text = TEXT.replace("float[1] one", f"{declared['w']}, {declared['v']}, float[1] one")
    body = declared["i"].replace(" i ", " inner ")
    proto = parse(text.replace("(float[400] p) {", f"(float[400] p) <{body}> {{"))
    for seed, tensor in enumerate(tensors_of(proto)):
        made = np.random.default_rng(seed).standard_normal(tensor.dims).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(made, tensor.name))
    return proto


def external_names(path: Path) -> list[str]:
    """Return the names of the tensors that a file has in external data."""
    proto = onnx.load(path, load_external_data=False)
    external = onnx.TensorProto.EXTERNAL
    return sorted(t.name for t in tensors_of(proto) if t.data_location == external)


def loaded(path: Path) -> onnx.ModelProto:
    """Return the model of a file with all bytes, and without a trace of where they were."""
    proto = onnx.load(path)
    for tensor in tensors_of(proto):
        tensor.ClearField("data_location")
    return proto
