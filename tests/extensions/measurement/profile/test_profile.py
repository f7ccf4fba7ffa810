"""`tiered.profile`: a real profile, pairs of nodes, work, charts, and wrong arguments."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tiered.extensions.measurement.profile import run
from tiered.extensions.measurement.profile.charts import MOST_BLOCKS, flame_svg, graph_svg
from tiered.extensions.measurement.profile.events import Shape
from tiered.extensions.measurement.profile.executed import Place
from tiered.extensions.measurement.profile.pairs import Profiles, operators_of
from tiered.extensions.measurement.profile.result import Machine, NodeTime, Profile
from tiered.runtime.opening import Opening
from tiered.support.errors import ModelError, UsageError
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


def timed(name: str, op_type: str = "Add", seconds: float = 1.0, **place: object) -> NodeTime:
    shape = (Shape("float", (2,)),)
    where = Place(**place)  # type: ignore[arg-type]  # its fields, by name
    return NodeTime(name, op_type, "CPU", where, seconds, 1, shape, shape, 16, 0)


def profile_of(*nodes: NodeTime) -> Profile:
    return Profile("m", nodes, sum(node.seconds for node in nodes), 1, Opening())


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


def test_weights_that_a_kernel_packs_are_part_of_its_work(tmp_path: Path) -> None:
    # Of constants, onnxruntime's profile lists only those that the kernel did not pack.
    model = parse("""(float[2,8] x, uint8[2,8] q) => (float[2,4] y, uint8[2,4] z)
        <float v, float[4] b = {1,2,3,4}, float s = {0.5}, uint8 p = {3}, uint8 w>
        { m = Gemm(x, v, b)  y = Relu(m)  z = QLinearMatMul(q, s, p, w, s, p, s, p) }""")
    for name, kind in (("v", np.float32), ("w", np.uint8)):
        model.graph.initializer.append(numpy_helper.from_array(np.ones((8, 4), kind), name))
    (found,) = tiered.profile(model, runs=1).models
    work = {node.op_type: (node.multiply_adds, node.nbytes) for node in found.nodes}
    assert work == {
        "FusedGemm": (2 * 8 * 4, 4 * (2 * 8 + 8 * 4 + 4 + 2 * 4)),
        "QLinearMatMul": (2 * 8 * 4, 2 * 8 + 8 * 4 + 2 * 4 + 3 * (4 + 1)),
    }


def test_fewer_runs_than_asked_for_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_MOST_EVENTS", 10)
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


# --- pairs ----------------------------------------------------------------------------------------


def test_parts_of_a_decomposed_operator_stand_beside_the_fused_one() -> None:
    first = profile_of(
        timed("erf", "Erf", outputs=("e",), inputs=("x",)),
        timed("add", "Add", outputs=("s",), inputs=("e",)),
        timed("mul", "Mul", outputs=("y",), inputs=("s", "x")),
        timed("last", "Neg", outputs=("z",), inputs=("y",)),
    )
    second = profile_of(
        timed("gelu", "Gelu", 0.5, outputs=("y",), inputs=("x",)),
        timed("last", "Neg", outputs=("z",), inputs=("y",)),
    )
    fused, same = Profiles((first, second)).pairs
    assert (fused.name, operators_of(fused.first), operators_of(fused.second)) == (
        "y", "Erf, Add, Mul", "Gelu",
    )  # fmt: skip
    assert (fused.seconds, fused.change) == ((3.0, 0.5), -2.5)
    assert (same.name, same.change) == ("z", 0.0)


def test_provenance_pairs_nodes_whose_tensors_have_other_names() -> None:
    first = profile_of(timed("a", outputs=("p",)), timed("b", outputs=("q",)))
    second = profile_of(
        timed("ab", "Fused", outputs=("r",), origins=("a", "b")), timed("new", outputs=("n",))
    )
    pairs = {operators_of(pair.second): operators_of(pair.first) for pair in
             Profiles((first, second)).pairs}  # fmt: skip
    assert pairs == {"Fused": "2 Add", "Add": ""}


def test_layers_are_compared_by_name() -> None:
    first = profile_of(timed("a", seconds=2.0, layer=("m", "one")), timed("b", layer=("m", "two")))
    second = profile_of(timed("a", seconds=1.5, layer=("m", "one")))
    one, two = Profiles((first, second)).layers(2)[::-1]
    assert (one.name, one.change) == ("m/one", -0.5)
    assert (two.name, two.change, two.second) == ("m/two", -1.0, None)


def test_one_model_has_no_pairs() -> None:
    alone = Profiles((profile_of(timed("a")),))
    assert (alone.pairs, alone.layers()) == ((), ())


# --- parts and charts -----------------------------------------------------------------------------


def test_what_onnxruntime_inserted_has_its_share() -> None:
    model = profile_of(
        timed("a", seconds=3.0), timed("t", "Transpose", seconds=1.0, is_inserted=True)
    )
    (part,) = model.inserted
    assert (part.name, part.count, part.share) == ("Transpose", 1, 0.25)
    assert "onnxruntime inserted 1 Transpose: 25.0% of the time" in model.remarks
    assert "the names of nodes have no layers, nor has their metadata" in model.remarks


def test_the_least_time_is_that_of_the_slower_of_both() -> None:
    machine = Machine(1e9, 1e8)
    assert machine.least(2_000_000, 1_000) == pytest.approx(2e-3)
    assert machine.least(1_000, 1_000_000) == pytest.approx(1e-2)


def test_the_flame_chart_has_a_box_for_each_layer() -> None:
    model = profile_of(
        timed("a", "MatMul", 0.75, layer=("m", "<one>")), timed("b", "Add", 0.25, layer=("m",))
    )
    svg = flame_svg(model)
    assert svg.count("<rect") == 1 + 5  # the background; all nodes, m, <one>, MatMul, Add
    assert "&lt;one&gt; 750 ms (75%)" in svg
    assert flame_svg(profile_of()).startswith("<svg")


def test_a_large_graph_is_drawn_in_blocks() -> None:
    few = profile_of(
        timed("a", outputs=("p",), inputs=("x",)), timed("b", outputs=("q",), inputs=("p",))
    )
    assert graph_svg(few).count('class="edge"') == 1
    for layer in (lambda at: ("m", f"layer.{at // 10}"), lambda at: ()):
        many = profile_of(
            *(timed(str(at), layer=layer(at), outputs=(f"t{at}",), inputs=(f"t{at - 1}",))
              for at in range(1000))
        )  # fmt: skip
        assert graph_svg(many).count('class="bar"') <= MOST_BLOCKS
    assert graph_svg(profile_of()).startswith("<svg")
