"""`tiered.profile`: a real profile of a model or two, and wrong arguments."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tiered.extensions.measurement.profile import profiling
from tiered.extensions.measurement.profile.kernel_events import (
    Events,
    Kernel,
    Key,
    ProfiledRun,
    Shape,
)
from tiered.extensions.measurement.profile.model_profile import Machine
from tiered.extensions.measurement.subjects import MeasuredModel, open_subject, subject
from tiered.runtime.opening import Opening
from tiered.runtime.worker.client import Worker, WorkerSession
from tiered.support.errors import ModelError, RuntimeFailure, UsageError
from tiered.testing import parse

MLP = """(float[n,8] x) => (float[n,4] y) <float v, float w>
    { a = MatMul(x, v)  b = Relu(a)  y = MatMul(b, w) }"""


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    model = parse(MLP)
    del model.graph.initializer[:]
    for name, dims in (("v", (8, 16)), ("w", (16, 4))):
        array = np.ones(dims, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    path = tmp_path / "mlp.onnx"
    onnx.save(model, path)
    return path


def test_a_profile_has_the_nodes_that_were_executed(mlp: Path) -> None:
    found = tiered.profile(mlp, dims={"n": 3}, runs=2, runtime_level="off", roofline=True)
    (model,) = found.models
    assert [node.op_type for node in model.nodes] == ["MatMul", "Relu", "MatMul"]
    assert [node.multiply_adds for node in model.nodes] == [3 * 8 * 16, 0, 3 * 16 * 4]
    assert model.nodes[0].outputs == (Shape("float", (3, 16)),)
    assert model.nodes[1].nbytes == 2 * 3 * 16 * 4
    assert model.runs == 2
    assert model.machine is not None
    assert all(node.least is not None and node.least > 0 for node in model.nodes)
    assert {part.name: part.count for part in model.operators} == {"MatMul": 2, "Relu": 1}
    assert sum(part.share for part in model.operators) == pytest.approx(1)
    json.dumps(found.to_dict())


def test_fewer_runs_than_asked_for_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "_MOST_EVENTS", 10)
    model = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    (found,) = tiered.profile(model, runs=5).models
    assert found.runs == 2
    assert found.remarks[0] == "2 of 5 runs: onnxruntime keeps a million events"


def test_what_onnxruntime_fuses_is_one_node(mlp: Path) -> None:
    model = parse("(float[4] x) => (float[4] y) { a = Relu(x)  b = Neg(a)  y = Tanh(b) }")
    (found,) = tiered.profile(model, runs=1).models
    assert [node.place.outputs for node in found.nodes] == [("a",), ("b",), ("y",)]
    assert not found.inserted


def test_bodies_count_on_their_own(tmp_path: Path) -> None:
    model = parse("""(float[2] x) => (float[2] y) <int64 trips = {4}, bool go = {1}> {
        y = Loop(trips, go, x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] t)
            { c2 = Identity(c)  t = Exp(s) }> }""")
    (found,) = tiered.profile(model, runs=1, runtime_level="off").models
    calls = {node.op_type: node.calls for node in found.nodes}
    assert (calls["Loop"], calls["Exp"]) == (1, 4)
    assert model.graph.node[0].name == ""


def test_external_data_is_found(mlp: Path) -> None:
    model = onnx.load(mlp)
    path = mlp.with_name("apart.onnx")
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (found,) = tiered.profile(path, runs=1).models
    assert len(found.nodes) >= 2


def test_the_trace_is_saved(mlp: Path) -> None:
    trace = mlp.with_name("trace.json")
    tiered.profile(mlp, runs=1, perfetto=trace)
    assert any(event["name"] == "model_run" for event in json.loads(trace.read_text()))


def test_two_models_stand_side_by_side(mlp: Path) -> None:
    small = mlp.with_name("small.onnx")
    tiered.optimize(mlp, small, opt_level=3)
    found = tiered.profile(mlp, small, runs=1, runtime_level="off")
    assert sorted(pair.name for pair in found.pairs) == ["a", "b", "y"]
    assert len(found.to_dict()["models"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"runs": 0}, "runs are 1 or more, not 0"),
        ({"perfetto": "trace.txt"}, "ends in .json, not 'trace.txt'"),
        ({"perfetto": "nowhere/t.json"}, "no such folder"),
        ({"provider": "cudda"}, "no provider 'cudda'"),
        ({"runtime_level": "some"}, "no runtime level 'some'"),
    ],
)
def test_wrong_arguments_are_named(mlp: Path, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tiered.profile(mlp, **arguments)  # type: ignore[arg-type]  # that they are wrong is the test


def test_one_model_or_two(mlp: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one model or two, not 3"):
        tiered.profile(mlp, mlp, mlp)
    with pytest.raises(UsageError, match="that of one model"):
        tiered.profile(mlp, mlp, perfetto=str(tmp_path / "t.json"))
    with pytest.raises(ModelError):
        tiered.profile(tmp_path / "none.onnx")


def test_a_trace_that_cannot_be_written_is_an_error_of_the_file(mlp: Path) -> None:
    folder = mlp.with_name("folder.json")
    folder.mkdir()
    with pytest.raises(ModelError, match=r"cannot write '.*folder.json': Is a directory"):
        tiered.profile(mlp, runs=1, perfetto=folder)


def test_a_model_with_data_and_without_names_is_named_and_finds_its_data(mlp: Path) -> None:
    onnx.save(onnx.load(mlp), mlp, save_as_external_data=True, location="w", size_threshold=0)
    unnamed = subject(mlp)
    each = profiling._with_names(unnamed)
    assert [node.name for node in each.proto.graph.node] == ["a", "b", "y"]
    assert (each.name, each.folder) == (str(mlp), str(mlp.parent))
    assert each.data_files == unnamed.data_files == [str(mlp.with_name("w"))]
    assert profiling._with_names(each) is each


@pytest.mark.parametrize(("nodes", "runs"), [(0, 449_997), (100, 4_497), (900_000, 1)])
def test_the_runs_of_a_profile_fit_its_events(nodes: int, runs: int) -> None:
    proto = onnx.ModelProto()
    proto.graph.node.extend([onnx.NodeProto()] * nodes)
    found = profiling._most_runs(MeasuredModel(proto, "m", proto))
    assert found == (899_997 if not nodes else runs)


def test_times_are_medians_of_runs_and_none_is_below_0() -> None:
    model = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].name = "n"
    shape = (Shape("float", (2,)),)
    key: Key = (("n", 0),)
    other: Key = (("seldom", 1),)
    runs = [
        ProfiledRun(2.0 + at, {key: seconds}, {key: 2})
        for at, seconds in enumerate((-1.0, 5.0, 3.0))
    ]
    runs[0].add(other, 9.0, 1)
    kernels = {key: Kernel("n", "Relu", "CPU", shape, shape, 16, False),
               other: Kernel("seldom", "Cast", "CPU", shape, shape, 16, True)}  # fmt: skip
    traced = profiling.Traced(subject(model), Events(tuple(runs), kernels), "", None)
    found = profiling._profile(traced, Opening(), ("made",), Machine(1.0, 4.0), 5)
    assert found.seconds == 3.0
    first, second = found.nodes
    assert (first.seconds, first.calls, first.nbytes, first.least) == (3.0, 2, 32, 8.0)
    assert (second.seconds, second.calls, second.nbytes) == (0.0, 0, 0)
    assert second.place.is_inserted
    assert found.notes == (
        "the graph that onnxruntime executes is unknown: nodes are known by their names",
        "3 of 5 runs: onnxruntime keeps a million events",
    )
    events = Events((ProfiledRun(1.0, {key: -1.0}, {key: 1}),), kernels)
    below = profiling.Traced(subject(model), events, "", model)
    found = profiling._profile(below, Opening(), (), None, 1)
    assert (found.nodes[0].seconds, found.nodes[0].least, found.notes) == (0.0, None, ())


def test_a_graph_that_cannot_be_written_is_unknown(
    mlp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def opened(worker: Worker, each: MeasuredModel, opening: Opening) -> WorkerSession:
        asked.append(os.path.basename(opening.executed))
        if opening.executed:
            raise RuntimeFailure("the provider compiles nodes")
        return open_subject(worker, each, opening)

    monkeypatch.setattr(profiling, "open_subject", opened)
    (found,) = tiered.profile(mlp, runs=1, runtime_level="off").models
    assert asked == ["executed.onnx", ""]
    assert found.notes[0].startswith("the graph that onnxruntime executes is unknown")
    assert [node.op_type for node in found.nodes] == ["MatMul", "Relu", "MatMul"]


def test_where_a_trace_and_the_executed_graph_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profiling.check(1, 1, None)
    profiling.check(1, 1, "trace.json")
    with pytest.raises(UsageError, match=r"cannot write 'no/trace\.json': no such folder"):
        profiling.check(1, 1, "no/trace.json")
    assert profiling._read("") is None
    assert profiling._read("none.onnx") is None
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"), "there.onnx")
    assert profiling._read("there.onnx") == onnx.load("there.onnx")


def test_the_graph_of_a_large_model_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    class Model:
        def hold(self, feeds: object) -> None:
            """Do nothing."""

    def open_subject(worker: object, each: object, opening: Any) -> Model:
        asked.append(bool(opening.executed))
        return Model()

    monkeypatch.setattr(profiling, "open_subject", open_subject)
    for nbytes in (profiling._LARGEST - 1, profiling._LARGEST, profiling._LARGEST + 1):
        each: Any = SimpleNamespace(file_bytes=nbytes)
        with profiling._opened(each, Opening(), [], "folder") as (_, executed):
            assert executed == ("folder/executed.onnx" if asked[-1] else "")
    assert asked == [True, False, False]


def test_the_shapes_of_inputs_are_those_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "profiled", lambda *given, **more: (given, more))
    found: Any = tiered.profile(
        "m.onnx", runs=3, input_shapes={"x": (1, 2)}, dims={"n": 3}, perfetto=Path("t.json")
    )
    (models, how, runs), more = found
    assert (models, how.threads, runs) == (("m.onnx",), 1, 3)
    assert more == {
        "inputs": (), "seed": 0, "dims": {"n": 3}, "input_shapes": {"x": (1, 2)},
        "roofline": False, "perfetto": "t.json",
    }  # fmt: skip
    plain: Any = tiered.profile("m.onnx")
    assert (plain[1]["dims"], plain[1]["input_shapes"], plain[1]["perfetto"]) == ({}, {}, None)
