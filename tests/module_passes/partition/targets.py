"""Targets that take some operators, and the marks of nodes."""

from collections.abc import Iterator
from contextlib import contextmanager

import onnx

from tiered import Backend, register_backend
from tiered.targets import unregister_backend
from tiered.targets.operator_rule import OperatorRule


def target(name: str, *operators: str) -> Backend:
    """Return a target that takes these operators, whatever their operands."""
    rules = {("", operator): (OperatorRule(),) for operator in operators}
    return Backend(name=name, operators=rules)


NPU = target("npu", "Neg", "Abs", "Add", "MatMul", "Relu")


def marks(graph: onnx.GraphProto, key: str) -> list[str | None]:
    """Return the mark of each node of a graph."""
    return [
        next((entry.value for entry in node.metadata_props if entry.key == key), None)
        for node in graph.node
    ]


@contextmanager
def registered(*backends: Backend) -> Iterator[None]:
    """Register backends during the block."""
    for backend in backends:
        register_backend(backend)
    try:
        yield
    finally:
        for backend in backends:
            unregister_backend(backend.name)
