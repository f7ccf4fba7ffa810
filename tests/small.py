"""A small model, and passes of a script over it, for the tests of the pass machinery."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    Skip,
    Value,
    function_pass,
    module_pass,
    op,
    register,
    rewrite,
    var,
)
from tiered.passes.registry import registry

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
RELUS = "g (float[2,3] x) => (float[2,3] y) { a = Relu(x)  b = Relu(a)  c = Neg(b)  y = Abs(c) }"


def proto(text: str = RELUS) -> onnx.ModelProto:
    """Parse a model; nodes are named by their first output, as `node_y`."""
    made = parser.parse_model(HEADER + text)
    for node in made.graph.node:
        node.name = node.name or f"node_{node.output[0]}"
    return made


def model(text: str = RELUS) -> Model:
    return Model.from_proto(proto(text))


def loaded_apart(of: onnx.ModelProto, folder: Path) -> Model:
    """Return the view of a model whose weights are external data in a folder."""
    for tensor in of.graph.initializer:
        # Only raw data becomes external.
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    path = folder / "model.onnx"
    onnx.save(of, path, save_as_external_data=True, size_threshold=0, location="weights")
    return Model.load(path)


def ops(of: Model | onnx.ModelProto) -> list[str]:
    """Return the operators of the main graph in order."""
    whole = of.to_proto() if isinstance(of, Model) else of
    return [node.op_type for node in whole.graph.node]


def content(of: Model) -> bytes:
    return bytes(of.to_proto().SerializeToString(deterministic=True))


@rewrite(op.Relu(op.Relu(var.x)), opt_level=1)
def fuse_relu(graph: Graph, x: Value) -> Value:
    """Two Relus are one."""
    once: Value = graph.op.Relu(x)
    return once


@rewrite(op.Neg(var.x), opt_level=3)
def drop_neg(graph: Graph, x: Value) -> Value:
    """Of no meaning: Neg(x) => x."""
    return x


@rewrite(op.Abs(var.x), opt_level=2)
def keep_abs(graph: Graph, x: Value) -> Skip:
    """Decline always."""
    return Skip("it is {} after all", "Abs")


@module_pass(opt_level=None)
def rename_graph(model: Model, ctx: PassContext, *, suffix: str = "!", times: int = 1) -> None:
    """Opt-in: rename the last node."""
    node = model.main.nodes[-1]
    model.main.rename_node(node, node.name + suffix * times)


@function_pass(opt_level=0)
def look(graph: Graph, ctx: PassContext) -> None:
    """Change nothing."""


def failing(error: BaseException, *, edits: int = 2, name: str = "failing") -> Pass:
    """Return a pass that raises after some edits."""

    def fail(graph: Graph, ctx: PassContext) -> None:
        for number in range(edits):
            graph.constant(np.array([number], np.float32))
        raise error

    return function_pass(opt_level=0, name=name)(fail)


@contextmanager
def registered(*passes: Pass) -> Iterator[None]:
    """Make passes known by name for a while."""
    for pass_ in passes:
        register(pass_)
    try:
        yield
    finally:
        for pass_ in passes:
            registry.unregister(pass_.name)
