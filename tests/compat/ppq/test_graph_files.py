"""Graphs from files, and in files."""

from pathlib import Path

import onnx
import pytest

from tests.compat.ppq.small_graphs import TEXT, graph, quantized
from tests.recorded import assert_values
from tests.small import proto
from tiered.compat.ppq import BaseGraph, TargetPlatform
from tiered.compat.ppq.graph_files import export_ppq_graph, load_onnx_graph


def written(name: str, platform: str = "ONNX", **more: str) -> object:
    """Write a graph, and return the names of the files of its folder."""
    export_ppq_graph(graph(), TargetPlatform[platform], name, **more)
    return sorted(path.name for path in Path().iterdir())


def exported(name: str, of: BaseGraph) -> list[str]:
    """Write a graph, and return the operators in the file."""
    export_ppq_graph(of, TargetPlatform.ONNX, name)
    return [node.op_type for node in onnx.load(name).graph.node]


def test_graphs_are_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(proto(TEXT), "m.onnx")
    names = {
        "load": lambda given: sorted(load_onnx_graph(given).operations),
        "proto": proto(TEXT),
        "written": written,
        "exported": exported,
        "graph": graph,
        "quantized": quantized,
        "Path": Path,
        "model": BaseGraph,
    }
    assert_values(__file__, names)
