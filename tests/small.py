"""A small model, and passes of a script over it, for the tests of the pass machinery."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tiered import (
    Graph,
    Model,
    Node,
    Pass,
    PassContext,
    PassInfo,
    PassResult,
    Skip,
    Value,
    function_pass,
    module_pass,
    op,
    register,
    rewrite,
    var,
)
from tiered.passes.interface.pass_info import Decision
from tiered.passes.interface.registry import registry
from tiered.testing import parse

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
RELUS = "g (float[2,3] x) => (float[2,3] y) { a = Relu(x)  b = Relu(a)  c = Neg(b)  y = Abs(c) }"
FOUR = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Neg(c) }"


def proto(text: str = RELUS) -> onnx.ModelProto:
    """Parse a model; nodes are named by their first output, as `node_y`."""
    made = parser.parse_model(HEADER + text)
    for node in made.graph.node:
        node.name = node.name or f"node_{node.output[0]}"
    return made


def model(text: str = RELUS) -> Model:
    return Model.from_proto(proto(text))


def parsed(text: str, *, opset: int = 21) -> Model:
    """Return the view of a model of `tiered.testing.parse`."""
    return Model.from_proto(parse(text, opset=opset))


def named(of: Model | Graph, name: str) -> Value:
    """Return a value of a graph, or of the main graph, by its name."""
    value = (of.main if isinstance(of, Model) else of).value(name)
    assert value is not None, name
    return value


def made_by(of: Model | Graph, name: str) -> Node:
    """Return the node that computes a value."""
    node = named(of, name).producer
    assert node is not None, name
    return node


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


@rewrite(op.Neg(var.x), opt_level=0)
def neg_to_abs(graph: Graph, x: Value) -> Value:
    """Of no meaning."""
    result: Value = graph.op.Abs(x)
    return result


@function_pass(opt_level=0)
def negs_to_relus(graph: Graph, ctx: PassContext) -> None:
    """Of no meaning: numbers each node as a rewrite of its own."""
    for node in graph.nodes_of("Neg"):
        with graph.rewrite("Neg => Relu", node):
            graph.replace(node, [graph.op.Relu(node.inputs[0])])


@function_pass(opt_level=0)
def all_negs_to_relus(graph: Graph, ctx: PassContext) -> None:
    """Of no meaning: the whole pass is one rewrite."""
    for node in graph.nodes_of("Neg"):
        graph.replace(node, [graph.op.Relu(node.inputs[0])])


def failing(error: BaseException, *, edits: int = 2, name: str = "failing") -> Pass:
    """Return a pass that raises after some edits."""

    def fail(graph: Graph, ctx: PassContext) -> None:
        for number in range(edits):
            graph.constant(np.array([number], np.float32))
        raise error

    return function_pass(opt_level=0, name=name)(fail)


class Recorder:
    """Notes every hook that is called."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.calls: list[str] = []
        self.results: list[PassResult] = []

    def _note(self, *what: object) -> None:
        self.calls.append(" ".join(filter(None, map(str, what))))

    def enter_pass_ctx(self) -> None:
        self._note("enter", self.name)

    def exit_pass_ctx(self) -> None:
        self._note("exit", self.name)

    def should_run(self, model: Model, info: PassInfo) -> bool:
        return True

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._note("before", self.name, info.name)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        self._note("after", self.name, info.name)

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._note("failed", self.name, info.name, type(error).__name__)

    def on_skip(self, model: Model, info: PassInfo, decision: Decision) -> None:
        self._note("skip", self.name, info.name, decision.reason)

    def on_rewrite(self, model: Model, info: PassInfo, record: Any) -> None:
        self._note("rewrite", self.name, info.name, record.number)

    def on_result(self, model: Model, result: PassResult) -> None:
        self.results.append(result)


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
