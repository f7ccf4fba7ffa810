"""A small graph of PPQ, and the same with a quantised operation."""

import numpy as np

from tests.small import model
from tiered import Model
from tiered.compat.ppq import (
    BaseGraph,
    OperationQuantizationConfig,
    QuantableGraph,
    QuantableOperation,
    QuantizationPolicy,
    QuantizationProperty,
    TargetPlatform,
    TensorQuantizationConfig,
)

TEXT = """g (float[2,3] x) => (float[2,3] y) <float[3] w = {1,2,3}> {
    a = Relu(x)  b = Add(a, w)  c = Neg(b)  y = Abs(c) }"""

SPLIT = """g (float[4] x) => (float[1] y, float[4] z)
    <int64[3] s = {1,1,2}, float[4] w = {1,2,3,4}> {
    a, b, c = Split(x, s)  y = Add(a, b)  d = Neg(x)  e = Mul(d, w)  z = Add(e, e) }"""


def graph(text: str = TEXT) -> BaseGraph:
    return BaseGraph(model(text).main)


def model_of(on: BaseGraph) -> Model:
    found = on.graph.model
    assert isinstance(found, Model)
    return found


def config() -> TensorQuantizationConfig:
    flags = QuantizationProperty.PER_TENSOR | QuantizationProperty.LINEAR
    policy = QuantizationPolicy(flags | QuantizationProperty.SYMMETRICAL)
    return TensorQuantizationConfig(policy)


def quantized() -> tuple[BaseGraph, QuantableGraph, QuantableOperation]:
    on = graph()
    configs = OperationQuantizationConfig([config(), config()], [config()])
    quantable = QuantableGraph(on)
    made = quantable.quantize_operation("node_b", TargetPlatform.TRT_INT8, configs)
    assert quantable.activate([{"x": np.ones((2, 3), np.float32)}]) == []
    return on, quantable, made


def state(of: BaseGraph) -> list[str]:
    """Return the operations of a graph with their variables, and its ports."""
    rows = []
    for name, each in of.operations.items():
        read, made = (
            [None if one is None else one.name for one in ports]
            for ports in (each.inputs, each.outputs)
        )
        rows.append(f"{name} {each.type} {read} {made}")
    return [*rows, f"in {[*of.inputs]} out {[*of.outputs]} w {[p.name for p in of.parameters()]}"]
