"""Graphs of PPQ are loaded from files and written to them."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.compat.test_ppq import TEXT
from tiered import UsageError
from tiered.compat.ppq import (
    PPQLinearQuantFunction,
    QuantableGraph,
    QuantizationPolicy,
    QuantizationProperty,
    RoundingPolicy,
    TargetPlatform,
    create_default_quant_config,
    export_ppq_graph,
    load_onnx_graph,
)
from tiered.testing import parse


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "in.onnx"
    onnx.save(parse(TEXT.removeprefix("g ")), path)
    return str(path)


def test_a_graph_is_loaded_edited_and_exported(source: str, tmp_path: Path) -> None:
    graph = load_onnx_graph(onnx_import_file=source)
    relu = next(each for each in graph.operations.values() if each.type == "Relu")
    relu.type = "Tanh"
    export_ppq_graph(graph=graph, platform=TargetPlatform.ONNX, graph_save_to=str(tmp_path / "out"))
    made = onnx.load(tmp_path / "out.onnx")
    assert [node.op_type for node in made.graph.node] == ["Tanh", "Add", "Neg", "Abs"]


def test_configs_become_codes_in_the_file(source: str, tmp_path: Path) -> None:
    graph = load_onnx_graph(source)
    wanted = QuantizationProperty
    policy = QuantizationPolicy(wanted.PER_TENSOR + wanted.LINEAR + wanted.SYMMETRICAL)
    quantable = QuantableGraph(graph)
    add = next(each for each in graph.operations.values() if each.type == "Add")
    config = create_default_quant_config(
        add, 8, -128, 127, "minmax", policy, RoundingPolicy.ROUND_HALF_EVEN
    )
    quantable.quantize_operation(add.name, TargetPlatform.INT8, config)
    assert quantable.activate([{"x": np.ones((2, 3), np.float32)}]) == []
    graph.operations[add.name].baking_parameters(PPQLinearQuantFunction)
    out = tmp_path / "out.onnx"
    export_ppq_graph(graph, TargetPlatform.ONNXRUNTIME, out)
    kinds = [node.op_type for node in onnx.load(out).graph.node]
    assert "QuantizeLinear" in kinds
    assert "DequantizeLinear" in kinds


def test_other_files_are_refused(source: str, tmp_path: Path) -> None:
    graph = load_onnx_graph(source)
    with pytest.raises(UsageError, match=r"platform=TargetPlatform.ONNX, .* not TRT_INT8 and None"):
        export_ppq_graph(graph, TargetPlatform.TRT_INT8, tmp_path / "out.onnx")
    with pytest.raises(UsageError, match=r"no config_save_to; not ONNX and 'c.json'"):
        export_ppq_graph(graph, TargetPlatform.ONNX, tmp_path / "out.onnx", "c.json")
