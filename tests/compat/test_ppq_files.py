"""Graphs of PPQ are loaded from files and written to them."""

import copy
import importlib
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.compat.ppq.small_graphs import TEXT
from tiered import Model, UsageError
from tiered.compat import ppq
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
from tiered.support.errors import ModelError
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


def test_a_graph_of_a_proto_and_copies(source: str) -> None:
    model = onnx.load(source)
    graph = load_onnx_graph(model)
    for same in (copy.deepcopy(graph), copy.copy(graph)):
        assert same.graph.model is not graph.graph.model
        assert list(same.operations) == list(graph.operations)
    operation = next(iter(graph.operations.values()))
    for part in (operation, graph.graph, operation.outputs[0]):
        with pytest.raises(ModelError, match=r"belongs to a model, .* `model.copy\(\)`"):
            copy.deepcopy(part)
    view = Model.from_proto(model)
    for twin in (copy.copy(view), copy.deepcopy(view)):
        assert twin.main.nodes[0] is not view.main.nodes[0]
        assert twin.to_proto() == model
    with pytest.raises(UsageError, match="takes a file or a ModelProto, not 3"):
        load_onnx_graph(3)  # type: ignore[arg-type]  # a wrong argument


@pytest.mark.parametrize(
    ("place", "name"),
    [("IR", "BaseGraph"), ("IR.search", "SearchableGraph"), ("api", "load_onnx_graph"),
     ("IR.morph", "GraphMerger"), ("core", "TargetPlatform"), ("executor", "TorchExecutor")],
)  # fmt: skip
def test_the_modules_of_ppq_are_importable(place: str, name: str) -> None:
    module = importlib.import_module(f"tiered.compat.ppq.{place}")
    assert getattr(module, name) is getattr(ppq, name)
