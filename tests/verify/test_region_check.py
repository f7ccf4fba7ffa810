"""Region mode: what a pass changed runs alone, and that proves as much as the whole model would."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import content, loaded_apart, model, named, ops, proto
from tests.verify.in_process import in_process
from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    Sequential,
    TensorType,
    Value,
    VerificationError,
    get_pass,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.passes.interface.pass_info import PassInfo
from tiered.pipeline.instruments import Verify
from tiered.runtime import Worker
from tiered.runtime.inputs.samples import Wanted
from tiered.support.errors import OutOfMemory
from tiered.verify import region_check
from tiered.verify.baseline import RecordedBaseline, RunnableModel, recorded_baseline
from tiered.verify.methods import Case, VerifiedPasses

LONG = """g (float[N,3] x) => (float[N,3] y) <float[3] w = {1, 2, 3}, float[3] v = {1, -2, 3}> {
    a = Exp(x)  b = Identity(a)  c = Mul(b, w)  d = Neg(c)  e = Relu(d)
    f = Add(e, v)  h = Sin(f)  k = Identity(h)  y = Tanh(k) }"""


@rewrite(op.Relu(var.x), opt_level=1)
def wrong(graph: Graph, x: Value) -> Value:
    """Wrong for what is negative."""
    result: Value = graph.op.Abs(x)
    return result


@rewrite(op.Relu(var.x), opt_level=1)
def drop(graph: Graph, x: Value) -> Value:
    """Right where whoever reads it knows no negative numbers."""
    return x


def case_of(
    text: str, change: Pass | str, *, budget: int = 1 << 30, recorded: bool = True, x: Any = None
) -> Case:
    """Return the case of a pass on a model that runs in this process."""
    given = model(text)
    _, worker = in_process()
    wanted = Wanted(bindings=1) if x is None else Wanted(({"x": np.array(x, np.float32)},))
    state, why = recorded_baseline(given, worker, wanted, 1 << 30)
    assert why == ""
    before = state if recorded else RecordedBaseline(state.stamp, state.part)
    (get_pass(change) if isinstance(change, str) else change).apply(given)
    subject = VerifiedPasses((PassInfo("a_pass", opt_level=1),))
    return Case(given, before, subject, wanted, worker, budget)


def checked(case: Case) -> tuple[list[tuple[str, str, int, str]], list[str]]:
    """Return the ways and the remarks of a region."""
    assert region_check.ChangedRegion().check(case) is not None
    return [(way.by, way.inputs, way.nodes, way.why) for way in case.methods], case.remarks


TWO = """g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}, float[2] v = {3, 4}> {
    a = Identity(x)  y = Mul(a, w)  b = Neg(x)  c = Identity(b)  z = Add(c, v) }"""
ALONE = "changed nodes do not run by themselves"


def test_the_ways_of_a_region() -> None:
    rows: list[tuple[str, Pass | str, dict[str, Any], Any]] = [
        (TWO, "eliminate_identity", {}, ([("region", "recorded", 4, "")], [])),
        (TWO, "eliminate_identity", {"recorded": False}, ([("region", "generated", 4, "")], [])),
        (TWO, "eliminate_identity", {"budget": 14},
         ([("nothing", "", 0, ALONE)], [f"not verified: 2 {ALONE}"] * 2)),
        (TWO, "eliminate_identity", {"budget": 16}, ([("region", "recorded", 4, "")], [])),
        (DRAW, "eliminate_identity", {},
         ([("nothing", "", 0, "y (not comparable: random)")],
          ["not verified: y (not comparable: random)"])),
        (TWO, get_pass("infer_shapes"), {}, ([("sameness", "", 0, "")], [])),
        (DEAD, wrong, {}, ([("sameness", "", 0, "")], [])),
        (DEAD, wrong, {"recorded": False}, ([("sameness", "", 0, "")], [])),
    ]  # fmt: skip
    for text, change, held, expected in rows:
        assert checked(case_of(text, change, **held)) == expected, (change, held)


DEAD = "g (float[2] x) => (float[2] y) { y = Neg(x)  a = Relu(x) }"
DRAW = """g (float[2] x) => (float[2] y) { a = Identity(x)  y = RandomNormalLike(a) }"""


def test_nodes_that_stop_running_are_the_fault_of_the_pass() -> None:
    @rewrite(op.Identity(var.x), opt_level=1)
    def gather(graph: Graph, x: Value) -> Value:
        """Of no meaning."""
        result: Value = graph.op.Gather(x, graph.constant(np.array([0, 9])))
        return result

    text = "g (float[2] x) => (float[2] y) { a = Identity(x)  y = Neg(a) }"
    with pytest.raises(VerificationError) as caught:
        checked(case_of(text, gather))
    assert str(caught.value).startswith(
        "a_pass: the changed nodes ran before the pass, but not after it: "
    )
    with pytest.raises(VerificationError, match="a_pass changed output 'y' of "):
        checked(case_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", wrong, x=[-1, 1]))


def test_a_difference_that_is_known_of_onnxruntime_is_a_remark() -> None:
    @rewrite(op.Where(var.c, var.x, var.x), opt_level=None)
    def drop_where(graph: Graph, c: Value, x: Value) -> Value:
        """Right, though onnxruntime's Where makes +0.0 of -0.0."""
        return x

    text = """g (float[2] x) => (float[2] y) <bool[2] c = {1, 1}> {
        a = Neg(x)  b = Where(c, a, a)  y = Identity(b) }"""
    ways, remarks = checked(case_of(text, drop_where, x=[0, 0]))
    assert [way[:2] for way in ways] == [("region", "recorded")]
    (remark,) = remarks
    assert remark.startswith("equal on onnx.reference, not on onnxruntime, as is known (wh")


def test_weights_of_a_group_are_within_a_quarter_of_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = list[Any]()
    monkeypatch.setattr(region_check._Regions, "_prove", lambda self, inside: groups.append(inside))
    for held, count in (({"budget": 64}, 1), ({"budget": 63}, 2), ({"recorded": False}, 2)):
        groups.clear()
        checked(case_of(TWO, "eliminate_identity", **held))
        assert len(groups) == count, held


def test_sizes_are_integers_of_one_axis_or_none() -> None:
    text = """g (float[2,3] x, int64[2] i, int32 j, bool[1] b, int8[2] k, int64[2,2] m)
        => (float[2,3] y) { y = Identity(x)  r = vendor.Any(i) }"""
    case = case_of(TWO, "eliminate_identity")
    case.model = model(text)
    case.model.main.set_type(named(case.model, "r"), TensorType(onnx.TensorProto.INT64, None))
    assert isinstance(case.before, RecordedBaseline)
    regions = region_check._Regions(case, case.before)
    found = {name: regions._is_size(name) for name in (*"xijbkmr", "nothing")}
    assert found == {
        "x": False, "i": True, "j": True, "b": True, "k": False, "m": False, "r": False,
        "nothing": False,
    }  # fmt: skip


def test_what_a_larger_region_has_covered_is_not_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = case_of(TWO, "eliminate_identity")
    asked = list[Any]()
    monkeypatch.setattr(region_check, "region_of", lambda _, nodes: asked.append(nodes))
    assert isinstance(case.before, RecordedBaseline)
    inside = frozenset({0, 1}), frozenset({0})
    for covered, expected in (
        (({0, 1}, {0}), []), (({0, 1, 2}, {0, 1}), []), (({0}, {0}), [inside]),
        (({0, 1}, set()), [inside]),
    ):  # fmt: skip
        regions = region_check._Regions(case, case.before)
        regions._sides = case.before.part, case.before.part
        regions._covered = covered
        regions._prove(inside)
        assert asked == expected, covered
        asked.clear()


def test_made_values_have_the_sizes_that_the_model_computes() -> None:
    text = """g (float[2,3] x) => (float[M,K] y) {
        s = Shape(x)  a = Neg(x)  b = Identity(a)  y = Reshape(b, s) }"""
    ways, remarks = checked(case_of(text, "eliminate_identity", recorded=False))
    assert ways == [("region", "generated", 3, "")], "Shape is among them"
    assert remarks == []


def test_values_that_a_region_made_are_kept_where_they_were_compared() -> None:
    case = case_of(LONG.replace("[N,3]", "[2,3]"), "eliminate_identity")
    after = region_check.ChangedRegion().check(case)
    assert after is not None
    assert [sorted(values) for values in after.values] == [list("acdefhxy")]
    assert [sorted(output.name for output in each.outputs) for each in case.comparisons] == [
        ["c", "y"]
    ]
    assert [list(each.inputs.rules) for each in case.samples] == [["a", "h"]]
    assert [each.label for each in case.samples] == ["generated inputs 1"]


def test_values_that_were_not_recorded_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.verify.baseline.RECORDED", -1)
    text = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        a = Mul(x, w)  b = Exp(a)  c = Identity(b)  y = Neg(c) }"""
    for budget, by in ((16, "region"), (15, "nothing")):
        ways, _ = checked(case_of(text, "eliminate_identity", budget=budget))
        assert [way[0] for way in ways] == [by]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as made:
        yield made


def run(passes: list[Any], given: Model, worker: Worker, **settings: Any) -> Verify:
    verify = Verify("region", worker=worker)
    with PassContext(instruments=[verify], **settings):
        Sequential(passes)(given)
    return verify


def test_only_changed_nodes_run_on_their_operands_in_the_model(worker: Worker) -> None:
    verify = run(["eliminate_identity"], model(LONG), worker)
    (way,) = verify.ways
    assert (way.by, way.inputs, way.nodes) == ("region", "recorded", 4)
    assert str(way) == "eliminate_identity: 4 nodes ran before and after, on recorded values"
    labels = [sample.label for sample in verify.samples]
    assert labels == ["generated inputs 1", "generated inputs 2"]
    assert all(comparison.ok for comparison in verify.comparisons)


def test_a_lossy_pass_is_held_to_the_runs_with_numbers_that_it_can_hold(worker: Worker) -> None:
    verify = run(["eliminate_identity", "float_to_half"], model(LONG), worker)
    assert [way.by for way in verify.ways] == ["region", "region"]
    assert [sample.inputs.is_varied for sample in verify.samples] == [False]


def test_a_wrong_pass_is_caught_and_undone(worker: Worker) -> None:
    given = model(LONG)
    with pytest.raises(VerificationError) as caught:
        run(["eliminate_identity", wrong], given, worker)
    assert "onnx.reference agrees: the changed nodes compute another" in str(caught.value)
    assert content(given) == content(model(LONG))


def test_nodes_after_a_change_may_undo_its_effect(worker: Worker) -> None:
    text = "g (float[N,3] x) => (float[N,3] y) { a = Neg(x)  b = Relu(a)  c = Abs(b)  y = Relu(c) }"
    given = model(text.replace("Abs(b)", "Relu(b)"))
    verify = run([drop.on("node_b")], given, worker)
    assert (verify.ways[0].by, ops(given)) == ("region", ["Neg", "Relu", "Relu"])
    with pytest.raises(VerificationError, match="drop changed output 'y'"):
        run([drop.on("node_b")], model(text), worker)


def test_each_picks_it_for_large_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.verify.verify_instrument.LARGE", 4)
    result = optimize_model(proto(LONG), passes=["eliminate_identity"], verify=True)
    assert result.verify is not None
    assert [way.by for way in result.verify.ways] == ["region"]
    monkeypatch.undo()
    result = optimize_model(proto(LONG), passes=["eliminate_identity"], verify=True)
    assert result.verify is not None
    assert [way.by for way in result.verify.ways] == ["model"]


def test_the_memory_that_is_allowed_makes_a_model_large(worker: Worker) -> None:
    given = proto("g (int64[2] i) => (float[2] y) { a = Identity(i)  y = Gather(w, a) }")
    array = np.zeros(2**18, np.float32)
    given.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    for memory, by in (("64MiB", "model"), ("2MiB", "region")):
        verify = Verify("each", worker=worker)
        with PassContext(instruments=[verify], config={"memory.max": memory}):
            Sequential(["eliminate_identity"])(Model.from_proto(given))
        assert [way.by for way in verify.ways] == [by]


def test_where_the_model_does_not_run_values_are_made(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiered.verify.baseline.SlicedSession", _too_large)
    with PassContext() as context:
        verify = run(["eliminate_identity"], model(LONG), worker)
    assert [(way.by, way.inputs) for way in verify.ways] == [("region", "generated")]
    said = [remark.reason for remark in context.remarks if remark.kind == "verify"]
    assert "(too large for a test): what passes change runs on values that are made" in said[0]
    with pytest.raises(VerificationError, match="wrong changed output"):
        run([wrong], model(LONG), worker)


def test_a_region_that_cannot_run_is_remarked(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiered.verify.verify_instrument._budget", lambda: 20)
    with PassContext() as context:
        verify = run([wrong], model(LONG), worker)
    # The model's own inputs do not show it, and what the made ones show may not occur there.
    assert [(way.by, way.inputs) for way in verify.ways] == [("nothing", "")]
    said = [remark.reason for remark in context.remarks if remark.kind == "verify"]
    assert "a single node reads" in said[0]
    assert "not verified: on generated values, which may not occur, wrong changed output" in said[1]


def _too_large(*_: object) -> None:
    raise OutOfMemory("too large for a test")


def test_weights_stay_in_their_files(tmp_path: Path, worker: Worker) -> None:
    text = "g (float[N] x) => (float[N] y) { a = Identity(x)  b = Add(a, w)  y = Add(b, v) }"
    given = proto(text)
    for name, count in (("w", 1 << 13), ("v", 1)):
        array = np.ones(count, np.float32)
        given.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    loaded = loaded_apart(given, tmp_path)
    runnable = RunnableModel.of(loaded)
    places = [
        [entry.value for entry in tensor.external_data if entry.key == "location"]
        for tensor in runnable.proto.graph.initializer
    ]
    assert places == [["weights"], []]  # the small one is read
    assert Path(runnable.folder) == tmp_path.resolve()
    for how in ("each", "region"):
        verify = Verify(how, worker=worker)
        with PassContext(instruments=[verify]):
            Sequential(["eliminate_identity"])(loaded.copy())
        assert verify.runs == 1
