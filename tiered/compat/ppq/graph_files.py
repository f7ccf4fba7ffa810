"""Files of graphs, by the names of `ppq.api`."""

from __future__ import annotations

import os

import onnx

from tiered.compat.ppq.base_graph import BaseGraph
from tiered.compat.ppq.configs.quantable import quantable_of
from tiered.compat.ppq.quantizing import QuantableGraph, TargetPlatform
from tiered.graph import Model
from tiered.support.errors import UsageError


def load_onnx_graph(
    onnx_import_file: str | os.PathLike[str] | onnx.ModelProto,
) -> BaseGraph:
    """Return the main graph of an ONNX file, or of a ModelProto, which stays.

    Raises:
        ModelError: the file cannot be read.
        UsageError: it is neither.
    """
    if isinstance(onnx_import_file, onnx.ModelProto):
        return BaseGraph(Model.from_proto(onnx_import_file).main)
    if not isinstance(onnx_import_file, str | os.PathLike):
        raise UsageError(
            f"load_onnx_graph takes a file or a ModelProto, not {onnx_import_file!r}: "
            "BaseGraph(model.main) is the graph of a model"
        )
    return BaseGraph(Model.load(onnx_import_file).main)


def export_ppq_graph(
    graph: BaseGraph,
    platform: TargetPlatform,
    graph_save_to: str | os.PathLike[str],
    config_save_to: str | None = None,
) -> None:
    """Write the model of a graph; configs of operations become Q/DQ in the file.

    Args:
        graph: a graph of the model.
        platform: ONNX, ONNXRUNTIME or NATIVE: all mean an ONNX file with Q/DQ.
        graph_save_to: the file; its suffix is `.onnx` if it has none.
        config_save_to: must be None: the configs are in the file.

    Raises:
        UsageError: another platform, or a file for configs.
        ModelError: a config has no scale yet, or ONNX cannot say what it does.
    """
    if config_save_to is not None or platform.name not in ("ONNX", "ONNXRUNTIME", "NATIVE"):
        raise UsageError(
            "export_ppq_graph writes ONNX with Q/DQ: platform=TargetPlatform.ONNX, and no "
            f"config_save_to; not {platform.name} and {config_save_to!r}"
        )
    model = graph.graph.model
    assert isinstance(model, Model)
    path = os.fspath(graph_save_to)
    with model.transaction():
        if any(quantable_of(node) is not None for each in model.graphs() for node in each.nodes):
            QuantableGraph(graph).export()
        model.save(path if os.path.splitext(path)[1] else f"{path}.onnx")
