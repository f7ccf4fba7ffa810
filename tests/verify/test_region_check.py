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
    PassInfo,
    Sequential,
    Value,
    VerificationError,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.graph import Stamp
from tiered.pipeline.instruments import Verify
from tiered.runtime import Worker
from tiered.support.errors import OutOfMemory
from tiered.verify.baseline import Runnable
from tiered.verify.extract import Part
from tiered.verify.live_extract import part_after, part_of
from tiered.verify.sliced_session import SlicedSession

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
    monkeypatch.setattr("tiered.verify.instrument.LARGE", 4)
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
    monkeypatch.setattr("tiered.verify.instrument._budget", lambda: 20)
    with PassContext() as context:
        verify = run([wrong], model(LONG), worker)
    # The model's own inputs do not show it, and what the made ones show may not occur there.
    assert [(way.by, way.inputs) for way in verify.ways] == [("nothing", "")]
    said = [remark.reason for remark in context.remarks if remark.kind == "verify"]
    assert "a single node reads" in said[0]
    assert "not verified: on generated values, which may not occur, wrong changed output" in said[1]


def _too_large(*_: object) -> None:
    raise OutOfMemory("too large for a test")


def test_slices_compute_the_outputs_of_the_model(worker: Worker) -> None:
    whole = proto(LONG)
    feeds = {"x": np.array([[1, -2, 0.5]], np.float32)}
    sliced = SlicedSession(Part.of(whole), "", worker, 12)
    assert len(sliced._slices) == 2
    expected = worker.run(whole, feeds)["y"]
    found = sliced.run(feeds, ["y", "d", "w"])
    assert np.array_equal(found["y"], expected)
    assert found["w"].tolist() == [1, 2, 3]
    with pytest.raises(OutOfMemory, match="a single node reads"):
        SlicedSession(Part.of(whole), "", worker, 8)


def test_weights_stay_in_their_files(tmp_path: Path, worker: Worker) -> None:
    text = "g (float[N] x) => (float[N] y) { a = Identity(x)  b = Add(a, w)  y = Add(b, v) }"
    given = proto(text)
    for name, count in (("w", 1 << 13), ("v", 1)):
        array = np.ones(count, np.float32)
        given.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    loaded = loaded_apart(given, tmp_path)
    runnable = Runnable.of(loaded)
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


NESTED = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
    g (bool c, float[2] x) => (float[2] y) { a = Neg(x)  i = Identity(a)
        b = If(c) <then_branch = t () => (float[2] p) { q = Identity(i)  p = f.twice(q) },
                   else_branch = e () => (float[2] r) { s = Relu(x)  r = Relu(s) }>
        d = f.twice(b)  y = Identity(d) }
    <domain: "f", opset_import: ["": 21]> twice (x) => (y) {
        z = Identity(x)  v = Relu(z)  w = Relu(v)  y = Add(w, w) }"""


class Follows:
    """An instrument that holds what the journal says of a part against the model as it is."""

    def __init__(self) -> None:
        self.part: Part | None = None
        self.stamp: Stamp | None = None
        self.compared = 0

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if self.stamp is None or model.journal.kept_since(self.stamp) < self.stamp.length:
            self.part, self.stamp = part_of(model), model.journal.stamp()

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        assert self.part is not None
        assert self.stamp is not None
        if not model.journal.moved_since(self.stamp):
            return
        found, _ = part_after(self.part, model, model.journal.since(self.stamp.length))
        wanted = part_of(model)
        assert _said(found) == _said(wanted), info.name
        self.part, self.stamp = found, model.journal.stamp()
        self.compared += 1


def _said(part: Part) -> tuple[object, ...]:
    nodes = {at: node.SerializeToString(deterministic=True) for at, node in part.nodes.items()}
    readers = {name: at for name, at in part.consumers.items() if at}
    ends = tuple(part.inputs), tuple(part.outputs), set(part.weights)
    return nodes, part.reads, part.producer, readers, ends, part.frame.SerializeToString()


def test_the_journal_keeps_a_part_as_the_model_is() -> None:
    path = Path(__file__).parents[2] / "examples" / "models" / "bert.ts.onnx"
    for given in (onnx.load(path), onnx.parser.parse_model(NESTED)):
        follows = Follows()
        optimize_model(given, opt_level=3, instruments=[follows])
        assert follows.compared > 2
