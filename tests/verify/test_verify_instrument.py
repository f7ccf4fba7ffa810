"""Verify: each pass is run, held to its promise, and undone if it breaks it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import content, model, ops, proto
from tests.verify.in_process import in_process
from tiered import (
    Graph,
    Model,
    PassContext,
    Sequential,
    Value,
    VerificationError,
    module_pass,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.passes.interface.pass_info import PassInfo
from tiered.passes.interface.report import Report
from tiered.pipeline.instruments import Verify
from tiered.runtime import Worker
from tiered.runtime.inputs.samples import Wanted
from tiered.runtime.worker.child import Child
from tiered.support.errors import RuntimeFailure, ShapeError, UsageError
from tiered.verify import verify_instrument
from tiered.verify.baseline import Baseline, recorded_baseline

CHAIN = """g (float[N,3] x) => (float[N,3] y) {
    a = Identity(x)  b = Relu(a)  c = Relu(b)  y = Identity(c) }"""


@rewrite(op.Relu(op.Relu(var.x)), opt_level=1)
def fuse(graph: Graph, x: Value) -> Value:
    """Right."""
    result: Value = graph.op.Relu(x)
    return result


@rewrite(op.Relu(var.x), opt_level=1)
def wrong(graph: Graph, x: Value) -> Value:
    """Wrong for what is negative."""
    result: Value = graph.op.Abs(x)
    return result


@rewrite(op.Mul(op.Relu(var.x), var.w), opt_level=1)
def right(graph: Graph, x: Value, w: Value) -> Value:
    """Right, and other nodes."""
    result: Value = graph.op.Mul(w, graph.op.Max(x, graph.op.Relu(x)))
    return result


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as made:
        yield made


def saved_apart(given: onnx.ModelProto, path: Path) -> Path:
    """Save a model with its weights in another file."""
    for tensor in given.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    onnx.save(given, path, save_as_external_data=True, size_threshold=0, location="w.bin")
    return path


def run(passes: list[Any], given: Model, *, verify: Verify, **settings: Any) -> PassContext:
    with PassContext(instruments=[verify], **settings) as context:
        Sequential(passes)(given)
    return context


def test_each_pass_that_changed_something_is_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    counting = Worker()
    original = counting.ask

    def ask(request: Any, *rest: Any) -> Any:
        asked.append(request["do"])
        return original(request, *rest)

    monkeypatch.setattr(counting, "ask", ask)
    verify = Verify("each", worker=counting)
    with counting:
        run(["eliminate_identity", fuse, fuse, "eliminate_nop_cast"], model(CHAIN), verify=verify)
    assert verify.runs == 2
    # Three states, then the first and the last in two other sessions.
    assert asked.count("open") == asked.count("close") == 3 + 4
    assert asked.count("run") == 2 * (3 + 4)
    assert all(comparison.ok for comparison in verify.comparisons)
    assert verify.largest == 0


def test_no_pass_has_the_time_in_which_the_worker_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    greet = Child.greet

    def slow(child: Child) -> object:
        time.sleep(3)
        return greet(child)

    monkeypatch.setattr(Child, "greet", slow)
    with Worker() as starting:
        context = run([fuse], model(CHAIN), verify=Verify(worker=starting))
    (result,) = context.report.of("fuse")
    assert result.changed
    assert result.seconds < 3


def test_the_wrong_pass_is_undone_and_named(worker: Worker) -> None:
    given = model(CHAIN)
    with pytest.raises(VerificationError) as caught:
        run([wrong], given, verify=Verify(worker=worker))
    assert content(given) == content(model(CHAIN))
    assert str(caught.value).startswith("wrong changed output 'y' of the model (max abs ")
    assert "rewrites    #1 to #2 of the run, at 'node_b', 'node_c'" in str(caught.value)


def test_the_right_passes_around_it_stay_where_that_is_asked_for(worker: Worker) -> None:
    given, verify = model(CHAIN), Verify(worker=worker)
    passes = ["eliminate_identity", wrong, fuse]
    context = run(passes, given, verify=verify, on_error="skip")
    assert ops(given) == ["Relu"]
    assert [result.name for result in context.report.failed()] == ["wrong"]
    assert verify.runs == 3


def test_at_the_end_all_of_it_is_undone(worker: Worker) -> None:
    given, verify = model(CHAIN), Verify("final", worker=worker)
    with pytest.raises(VerificationError, match="changed by  eliminate_identity, wrong"):
        run(["eliminate_identity", wrong], given, verify=verify)
    assert len(ops(given)) == 4
    assert verify.runs == 1
    run(["eliminate_identity", fuse], given, verify=verify)
    assert verify.runs == 2


def test_passes_that_are_called_one_by_one_share_a_baseline(worker: Worker) -> None:
    given, verify = model(CHAIN), Verify(worker=worker)
    with PassContext(instruments=[verify]):
        for pass_ in ("eliminate_identity", fuse):
            Sequential([pass_])(given)
        before = verify._watched[given].baseline
        given.main.rename_node(given.main.nodes[0], "by_hand")
        with pytest.raises(VerificationError):
            Sequential([wrong])(given)
        assert verify._watched[given].baseline is not before
    assert not verify._watched


def test_a_rollback_of_more_than_the_pass_is_noticed(worker: Worker) -> None:
    given, verify = model(CHAIN), Verify(worker=worker)
    with PassContext(instruments=[verify], on_error="skip"):
        group = Sequential(["eliminate_identity"], name="group", checks=[lambda model: True])
        Sequential([Sequential([fuse], name="undone", checks=[_only(4)]), group, fuse])(given)
    assert ops(given) == ["Relu"]
    assert all(comparison.ok for comparison in verify.comparisons)


def _only(nodes: int) -> Any:
    return lambda model: len(model.main) == nodes


def test_structure_runs_nothing() -> None:
    verify = Verify("structure")
    run(["eliminate_identity", wrong], model(CHAIN), verify=verify)
    assert (verify.runs, verify.comparisons) == (0, [])
    result = optimize_model(proto(CHAIN), passes=[wrong], verify="structure")
    assert result.verified is None


def test_an_interface_that_changes_unannounced_is_an_error(worker: Worker) -> None:
    @module_pass(opt_level=None)
    def add_output(model: Model, ctx: PassContext) -> None:
        model.main.add_output(model.main.nodes[0].output)

    for how in ("each", "structure"):
        given = model(CHAIN)
        with pytest.raises(VerificationError, match="add_output changed the interface"):
            run([add_output], given, verify=Verify(how, worker=worker))
        assert content(given) == content(model(CHAIN))


def test_an_interface_that_changes_as_announced_is_compared_where_both_have_it(
    worker: Worker,
) -> None:
    given, verify = model(CHAIN), Verify(worker=worker)
    with PassContext(instruments=[verify], required=["const_batch_size"]):
        Sequential(["const_batch_size", "eliminate_identity"])(given)
    assert verify.runs == 2
    assert [sample.sizes for sample in verify.samples] == ["", ""]
    assert verify.samples[0].inputs.feeds["x"].shape == (1, 3)


def test_off_does_nothing() -> None:
    verify = Verify("off")
    run([wrong], model(CHAIN), verify=verify)
    assert verify.runs == 0
    assert optimize_model(proto(CHAIN), passes=[wrong], verify="off").verify is None


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(UsageError, match="not 'eech'; did you mean 'each'"):
        Verify("eech")


def test_a_result_that_does_not_open_or_run_is_the_fault_of_the_pass(worker: Worker) -> None:
    @rewrite(op.Relu(op.Relu(var.x)), opt_level=None)
    def nonsense(graph: Graph, x: Value) -> Value:
        result: Value = graph.op("nowhere").Nothing(x)
        return result

    with pytest.raises(VerificationError, match="no operator nowhere::Nothing, and nothing"):
        run([nonsense], model(CHAIN), verify=Verify(worker=worker))

    @rewrite(op.Relu(op.Relu(var.x)), opt_level=None)
    def misfit(graph: Graph, x: Value) -> Value:
        result: Value = graph.op.Reshape(x, graph.constant(np.array([7, 3])))
        return result

    with pytest.raises(VerificationError, match="misfit: the model before runs, but not the"):
        run([misfit], model(CHAIN), verify=Verify(worker=worker))


def test_a_model_that_does_not_run_is_no_fault_of_a_pass() -> None:
    text = """g (int32[1] x) => (int32[1] y) <int32[1] m = {-1}> {
        i = Identity(x)  a = Min(i, least)  y = Div(a, m) }"""
    crash = proto(text.replace("m = {-1}", "m = {-1}, int32[1] least = {-2147483648}"))
    with pytest.raises(RuntimeFailure, match="the runtime crashed while running"):
        optimize_model(crash, verify=True)


ENDLESS = """g (bool go, float[1] x) => (float[1] y) { i = Identity(x)  y = Loop(, go, i) <
    body = b (int64 n, bool c, float[1] a) => (bool d, float[1] e) { d = Identity(c)  e = Neg(a) }
    > }"""
VAST = """g (float[1] x, int64[2] s) => (float[n, m] y) <int64[2] k = {160000, 160000}> {
    i = Identity(x)  z = Mul(s, k)  y = Expand(i, z) }"""


@pytest.mark.parametrize(
    ("how", "text", "says"),
    [
        ("each", ENDLESS, "took more than 1 s"),
        ("region", ENDLESS, "took more than 1 s"),
        ("each", VAST, "emory"),  # regions need not hold what the whole model does
        ("final", VAST, "emory"),
    ],
)
def test_a_model_without_end_or_bounds_is_an_error(how: str, text: str, says: str) -> None:
    # The model without bounds fails at once, which may be late on a busy machine.
    limits = {"verify.seconds": 60.0 if text == VAST else 1.0, "verify.memory": "2GiB"}
    inputs = {"x": np.ones(1, np.float32)}
    inputs |= {"s": np.ones(2, np.int64)} if text == VAST else {"go": np.array(True)}
    with pytest.raises(RuntimeFailure, match=says):
        optimize_model(
            proto(text),
            passes=["eliminate_identity"],
            verify=how,  # type: ignore[arg-type]  # one of the names
            inputs=[inputs],
            config=limits,
        )


def test_random_outputs_are_not_compared(worker: Worker) -> None:
    text = """g (float[3] x) => (float[3] y, float[3] r) {
        n = RandomNormalLike(x)  r = Add(n, x)  a = Identity(x)  b = Relu(a)  y = Relu(b) }"""
    given, verify = model(text), Verify(worker=worker)
    run(["eliminate_identity", fuse], given, verify=verify)
    notes = {output.name: output.note for output in verify.comparisons[0].outputs}
    assert notes == {"y": "", "r": "not comparable: random"}
    with pytest.raises(VerificationError, match="changed output 'y'"):
        run([wrong], model(text), verify=verify)


def test_weights_of_other_files_are_read(tmp_path: Path, worker: Worker) -> None:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Identity(x)  y = Mul(a, w) }"
    path = saved_apart(proto(text), tmp_path / "in.onnx")
    verify = Verify(worker=worker)
    run(["eliminate_identity"], Model.load(path), verify=verify)
    assert verify.runs == 1


def test_an_instrument_serves_many_models(worker: Worker) -> None:
    verify = Verify(worker=worker)
    with PassContext(instruments=[verify]):
        for _ in range(2):
            Sequential(["eliminate_identity"])(model(CHAIN))
    assert verify.runs == 2


def test_the_same_remark_of_several_passes_and_samples_is_made_once() -> None:
    report = Report()
    for name in ("fuse_a", "fuse_b", "fuse_a"):
        report.note("verify", "halves are kept wide", name)
    report.note("verify", "another")
    assert list(map(str, report.remarks(3))) == ["fuse_a, fuse_b: halves are kept wide", "another"]


def test_the_structure_is_wrong_where_a_pass_made_it_so(monkeypatch: pytest.MonkeyPatch) -> None:
    given = model(CHAIN)
    info = PassInfo("a_pass", opt_level=0)

    def complaint(loaded: str | None = None, **held: Any) -> str:
        answers = {
            "complaint_of": None, "is_only_declared": False, "contrib_complaint": None,
            "is_contrib_complaint_new": False, **held,
        }  # fmt: skip
        for name, answer in answers.items():
            monkeypatch.setattr(verify_instrument, name, lambda *_, answer=answer: answer)
        monkeypatch.setattr(Model, "complaint_as_loaded", lambda _: loaded)
        try:
            verify_instrument._check_structure(given, info)
        except VerificationError as error:
            return str(error)
        return ""

    invalid = f"a_pass made {given.label} invalid: "
    for held, expected in (
        ({}, ""),
        ({"complaint_of": "no"}, f"{invalid}no"),
        ({"complaint_of": "no", "is_only_declared": True}, ""),
        ({"complaint_of": "no", "loaded": "before"}, ""),
        ({"loaded": "before"}, ""),
        ({"contrib_complaint": "odd", "is_contrib_complaint_new": True}, f"{invalid}odd"),
        ({"contrib_complaint": "odd"}, ""),
        ({"is_contrib_complaint_new": True}, ""),
    ):
        assert complaint(**held) == expected, held
    monkeypatch.undo()
    monkeypatch.setattr(Model, "check_view", _inconsistent)
    with pytest.raises(VerificationError, match=rf"^a_pass left {given.label} inconsistent: odd$"):
        verify_instrument._check_structure(given, info)


def _inconsistent(_: Model) -> None:
    raise AssertionError("odd")


def test_generated_inputs_have_the_dims_that_are_asked_for(worker: Worker) -> None:
    verify = Verify("each", shapes={"x": [5, 3]}, worker=worker)
    run([fuse], model(CHAIN), verify=verify)
    assert [sample.inputs.feeds["x"].shape for sample in verify.samples] == [(5, 3)] * 2


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"z": [5, 3]}, UsageError, "the model has no input 'z'; it has x"),
        ({"x": [5]}, ShapeError, "input 'x' has 2 dims"),
        ({"x": [5, 4]}, ShapeError, "dim 1 of input 'x' is 3"),
        ({"x": "53"}, UsageError, "expected a list of dims"),
    ],
)
def test_dims_that_generated_inputs_cannot_have_are_refused(
    shapes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run([fuse], model(CHAIN), verify=Verify("structure", shapes=shapes))


def test_all_passes_together_are_compared_with_the_model_before_the_outermost_pipeline(
    worker: Worker,
) -> None:
    inner = Sequential([fuse], name="inner")
    with pytest.raises(VerificationError, match="changed by  wrong, fuse"):
        run([wrong.on("node_c"), inner], model(TWICE), verify=Verify("final", worker=worker))


TWICE = """g (float[N,3] x) => (float[N,3] y) {
    a = Neg(x)  c = Relu(a)  d = Exp(c)  e = Relu(d)  f = Relu(e)  y = Identity(f) }"""


def test_where_all_outputs_are_random_the_changed_nodes_are_compared(worker: Worker) -> None:
    text = "g (float[N] x) => (float[N] y) { a = Relu(x)  b = Relu(a)  y = RandomNormalLike(b) }"
    for how in ("each", "region"):
        verify = Verify(how, worker=worker)
        run([fuse], model(text), verify=verify)
        assert [way.by for way in verify.ways] == ["region"], how
    with pytest.raises(VerificationError, match="wrong changed output 'b'"):
        run([wrong.on("node_b")], model(text.replace("a = Relu", "a = Neg")),
            verify=Verify("each", worker=worker))  # fmt: skip


def test_regions_have_no_other_session_to_be_compared_in(worker: Worker) -> None:
    for how in ("region", "structure"):
        verify = Verify(how, worker=worker)
        context = run([fuse], model(CHAIN), verify=verify, config={"verify.default_session": True})
        assert [each for each in context.remarks if each.kind == "verify"] == [], how


def test_weights_of_a_quarter_of_the_allowed_memory_run_as_a_whole(worker: Worker) -> None:
    given = proto("g (float[N,3] x) => (float[N,3] y) { a = Identity(x)  y = Add(a, w) }")
    given.graph.initializer.append(
        onnx.numpy_helper.from_array(np.zeros((1 << 18, 3), np.float32)[: 1 << 18], "w")
    )
    weights = 3 << 20
    for memory, by_region in ((4 * weights, False), (4 * weights - 4, True)):
        verify = Verify("each", worker=worker)
        with PassContext(config={"memory.max": f"{memory}B"}):
            found = verify._is_by_region(Model.from_proto(given))
        assert found == by_region, memory


def test_the_end_of_the_outermost_pipeline_is_the_moment_for_other_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = list[int]()
    monkeypatch.setattr(Verify, "_deploy", lambda _, watched: ended.append(len(watched.open)))
    for kinds, expected in (
        (["function"], []), (["pipeline"], [0]), (["pipeline", "function"], [0]),
        (["pipeline", "pipeline"], [0]),
    ):  # fmt: skip
        given, verify = model(CHAIN), Verify("structure")
        infos = [PassInfo("a_pass", opt_level=1, kind=kind) for kind in kinds]
        for info in infos:
            verify.run_before_pass(given, info)
        given.main.rename_node(given.main.nodes[0], "other")
        for info in reversed(infos):
            verify.run_after_pass(given, info)
        assert ended == expected, kinds
        ended.clear()


def test_two_whole_models_that_ran_are_compared_in_other_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = model(CHAIN)
    one, two, bare = (Baseline.of(given) for _ in range(3))
    two.outputs = one.outputs = [{"y": np.zeros(1)}]
    part = recorded_baseline(given, in_process()[1], Wanted(bindings=1), 1 << 30)[0]

    class Compared:
        def __init__(self, *pair: Any) -> None:
            self.pair = pair[:2]

        def remarks(self) -> list[str]:
            return [f"compared {[each is one for each in self.pair]}"]

    monkeypatch.setattr(verify_instrument, "Deployment", Compared)
    said = ["compared [True, False]"]
    for first, last, is_wanted, expected in (
        (one, two, True, said), (one, two, False, []), (one, one, True, []),
        (one, bare, True, []), (bare, two, True, ["compared [False, False]"]),
        (None, two, True, []), (part, two, True, []), (one, part, True, []),
    ):  # fmt: skip
        with PassContext(config={"verify.default_session": is_wanted}) as context:
            verify = Verify("each", worker=in_process()[1])
            verify._deploy(verify_instrument._Watched(first=first, baseline=last))
        assert [str(each) for each in context.report.remarks(3)] == expected
