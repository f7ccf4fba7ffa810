"""Region mode: what a pass changed runs alone, and that proves as much as the whole model would."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import content, loaded_apart, model, ops, proto
from tiered import (
    Graph,
    Model,
    PassContext,
    Sequential,
    Value,
    VerificationError,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.pipeline.instruments import Verify
from tiered.runtime import Worker
from tiered.support.errors import OutOfMemory
from tiered.verify.baseline import RunnableModel

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
