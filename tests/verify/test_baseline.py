"""Baselines: a model at one moment, its samples and outputs, and which runtime runs it."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import model, proto
from tests.verify.in_process import in_process
from tiered import Model
from tiered.runtime.external_data import MOST_READ
from tiered.runtime.inputs.samples import Wanted
from tiered.support.errors import (
    Crashed,
    MissingOperator,
    OutOfMemory,
    RuntimeFailure,
    TimedOut,
)
from tiered.verify import baseline
from tiered.verify.baseline import (
    Baseline,
    Remembering,
    RunnableModel,
    _smallest,
    recorded_baseline,
    weights_of,
    without,
)

TEXT = """g (float[N] x) => (float[N] y) <float[1] w = {2}> {
    a = Mul(x, w)  b = Exp(a)  y = Neg(b) }"""
HALF = "g (float16[2] x) => (float16[2] y) { y = Neg(x) }"
FEEDS = [{"x": np.array([1, 2], np.float32)}]


def given(**held: Any) -> Wanted:
    return Wanted(given=tuple(FEEDS), **held)


# --- runs -----------------------------------------------------------------------------------------


def test_a_baseline_has_the_moment_and_the_bytes_of_its_model() -> None:
    held = model(TEXT)
    made = Baseline.of(held)
    assert made.stamp == held.journal.stamp()
    assert onnx.ModelProto.FromString(made.content) == made.runnable.proto
    assert (made.samples, made.outputs, made.random, made.refused) == ([], [], frozenset(), "")


def test_a_baseline_runs_once_on_its_samples() -> None:
    here, worker = in_process()
    made = Baseline.of(model(TEXT))
    made.run(worker, given())
    assert [sample.inputs.feeds["x"].tolist() for sample in made.samples] == [[1, 2]]
    assert np.allclose(made.outputs[0]["y"], -np.exp([2, 4]))
    runs = here.runs
    made.run(worker, given())
    assert here.runs == runs
    assert here.opened[0].is_closed


def test_varied_samples_are_replaced_for_a_pass_that_cannot_hold_them() -> None:
    _, worker = in_process()
    made = Baseline.of(model(TEXT))
    made.run(worker, Wanted(bindings=2))
    first = [sample.inputs for sample in made.samples]
    assert any(inputs.is_varied for inputs in first)
    made.run(worker, Wanted(bindings=2))
    assert [sample.inputs for sample in made.samples] == first
    made.run(worker, Wanted(bindings=2, varied=False))
    assert not any(sample.inputs.is_varied for sample in made.samples)
    plain = [sample.inputs for sample in made.samples]
    made.run(worker, Wanted(bindings=2))
    assert [sample.inputs for sample in made.samples] == plain


def test_random_outputs_are_noted() -> None:
    _, worker = in_process()
    text = "g (float[N] x) => (float[N] y, float[N] r) { y = Neg(x)  r = RandomUniformLike(x) }"
    made = Baseline.of(model(text))
    made.run(worker, given())
    assert made.random == {"r"}


def test_results_of_a_search_are_kept() -> None:
    here, worker = in_process()
    session = Remembering(worker.open(proto(TEXT)))
    assert (session.inputs, session.outputs) == (("x",), ("y",))
    feeds = {"x": np.array([1], np.float32)}
    made = session.run(feeds)
    assert session.outputs_for(feeds) is made
    again = session.run(feeds)
    assert session.outputs_for(feeds) is again
    runs = here.runs
    session.outputs_for({"x": np.array([1], np.float32)})
    assert here.runs == runs + 1


# --- which runtime --------------------------------------------------------------------------------


def test_what_onnxruntime_does_not_load_the_reference_runs() -> None:
    here, worker = in_process()
    here.refuses["onnxruntime"] = RuntimeFailure("no kernel")
    made = Baseline.of(model(TEXT))
    made.run(worker, given())
    assert (made.refused, made.is_referred) == ("no kernel", True)
    assert np.allclose(made.outputs[0]["y"], -np.exp([2, 4]))
    assert {how["runtime"] for how in here.how} == {"onnxruntime", "reference"}


def test_where_neither_runs_it_both_reasons_are_named() -> None:
    here, worker = in_process()
    here.refuses = {"onnxruntime": RuntimeFailure("one"), "reference": RuntimeFailure("two")}
    with pytest.raises(RuntimeFailure, match="neither runtime runs the original: one; two"):
        Baseline.of(model(TEXT)).run(worker, given())


@pytest.mark.parametrize("kind", [MissingOperator, Crashed, TimedOut, OutOfMemory])
def test_limits_and_missing_operators_are_not_given_to_the_reference(
    kind: type[RuntimeFailure],
) -> None:
    here, worker = in_process()
    here.refuses["onnxruntime"] = kind("a reason")
    with pytest.raises(kind, match="a reason"):
        Baseline.of(model(TEXT)).run(worker, given())
    assert [how["runtime"] for how in here.how] == ["onnxruntime"]


def test_halves_are_opened_on_the_reference_at_once() -> None:
    here, worker = in_process()
    here.refuses["onnxruntime"] = RuntimeFailure("no kernel")
    made = Baseline.of(model(HALF))
    with made.opened(worker) as session:
        assert session.run({"x": np.array([1, 2], np.float16)})["y"].tolist() == [-1, -2]
    assert made.is_referred
    assert made.refused == ""
    here.refuses["reference"] = RuntimeFailure("neither")
    with pytest.raises(RuntimeFailure, match="no kernel"), Baseline.of(model(HALF)).opened(worker):
        pass


@pytest.mark.parametrize("setting", ["default"])
def test_other_settings_and_dtypes_are_refused_as_they_are(setting: Any) -> None:
    here, worker = in_process()
    here.refuses["onnxruntime"] = RuntimeFailure("no kernel")
    for text, how in ((HALF, {"setting": setting}), (TEXT, {})):
        made = Baseline.of(model(text))
        with pytest.raises(RuntimeFailure, match="no kernel"), made.opened(worker, **how):
            pass
        assert not made.is_referred
    here.refuses["onnxruntime"] = MissingOperator("none")
    with pytest.raises(MissingOperator), Baseline.of(model(HALF)).opened(worker):
        pass


def test_weights_that_are_too_large_are_not_read_for_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, worker = in_process()
    made = Baseline.of(model(TEXT))
    for nbytes, is_read in ((MOST_READ, True), (MOST_READ + 1, False)):
        monkeypatch.setattr(baseline, "bytes_on_disk", lambda _, nbytes=nbytes: nbytes)
        if is_read:
            with made.referred(worker):
                assert made.is_referred
            continue
        with (
            pytest.raises(RuntimeFailure, match="the weights are too large"),
            made.referred(worker),
        ):
            pass


def test_the_label_and_the_setting_are_those_of_the_model() -> None:
    here, worker = in_process()
    with Baseline.of(model(TEXT)).opened(worker, "default"):
        (how,) = here.how
        assert (how["label"], how["setting"]) == ("model 'g' (outputs y)", "default")


# --- forms ----------------------------------------------------------------------------------------


def test_a_model_in_one_piece_has_its_weights_inside(tmp_path: Any) -> None:
    made = proto("g (float[N] x) => (float[N] y) { y = Add(x, w) }")
    tensor = numpy_helper.from_array(np.zeros(1 << 13, np.float32), "w")
    (tmp_path / "w.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    made.graph.initializer.append(tensor)
    apart = RunnableModel(made, str(tmp_path))
    inside = apart.inlined()
    assert inside.folder == ""
    assert len(inside.proto.graph.initializer[0].raw_data) == 1 << 15
    assert not apart.proto.graph.initializer[0].raw_data


def test_a_model_that_protobuf_cannot_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Large:
        def SerializeToString(self, **_: Any) -> bytes:
            raise ValueError("exceeds 2 GiB")

    large: Any = Large()
    with pytest.raises(RuntimeFailure, match="the model is too large for protobuf: exceeds 2 GiB"):
        RunnableModel(large).content()


def test_outputs_without_some() -> None:
    assert without({"a": 1, "b": 2}, frozenset({"b", "c"})) == {"a": 1}


# --- recorded values ------------------------------------------------------------------------------


def test_a_recorded_baseline_has_the_values_of_its_run() -> None:
    _, worker = in_process()
    static = model(TEXT.replace("[N]", "[2]"))
    state, why = recorded_baseline(static, worker, given(), 1 << 20)
    assert why == ""
    (values,) = state.values
    assert set(values) == {"x", "a", "b", "y"}
    assert values["a"].tolist() == [2, 4]
    assert [sample.label for sample in state.samples] == ["inputs 1"]
    assert set(state.part.weights) == {"w"}


def test_without_the_memory_for_a_run_nothing_is_recorded() -> None:
    _, worker = in_process()
    state, why = recorded_baseline(model(TEXT), worker, given(), 6)
    assert why == "a single node reads 0 MiB of weights"
    assert (state.samples, state.values) == ([], [])
    state, why = recorded_baseline(model(TEXT), worker, given(), 8)
    assert why == ""
    assert state.values


def test_the_smallest_values_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, Any] = {
        "a": (32, (2, "N")), "b": (8, (3,)), "c": (4, (4,)), "d": (32, ("M",)),
        "e": (64, (None, 2)),
    }  # fmt: skip
    assert _smallest(sizes, {"N": 5}) == ["c", "b", "a"]  # 2, 3 and 40 bytes
    assert _smallest(sizes, {"N": 5, "M": 0}) == ["d", "c", "b", "a"]
    for limit, expected in ((45, ["c", "b", "a"]), (44, ["c", "b"]), (4, ["c"]), (1, [])):
        monkeypatch.setattr(baseline, "RECORDED", limit)
        assert _smallest(sizes, {"N": 5}) == expected


def test_the_weights_of_a_model_have_bytes() -> None:
    assert weights_of(model(TEXT)) == 4
    made = proto("g (float[N] x, float[3] w) => (float[N] y) { y = Neg(x) }")
    made.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "w"))
    assert weights_of(Model.from_proto(made)) == 12


def test_only_values_of_a_known_type_have_sizes() -> None:
    text = """g (float[N,3] x, string[2] s, int64[M] k) => (float[N,3] y) {
        a = Neg(x)  t = Identity(s)  u = Abs(x)  v, m = Dropout(a)  r = Reshape(a, k)
        y = Exp(v) }"""
    given = proto(text.replace("u = Abs(x)", "u = com.odd.Odd(x)"))
    given.opset_import.add(domain="com.odd", version=1)
    given.graph.node[3].output[1] = ""
    sizes = baseline._sizes(Model.from_proto(given))
    assert {name: (bits, [str(dim) for dim in dims]) for name, (bits, dims) in sizes.items()} == {
        "a": (32, ["N", "3"]), "v": (32, ["N", "3"]),
    }  # fmt: skip


def test_plain_samples_serve_a_pass_that_holds_fewer_numbers() -> None:
    here, worker = in_process()
    made = Baseline.of(model(TEXT))
    made.run(worker, given())
    runs = here.runs
    made.run(worker, given(varied=False))
    assert here.runs == runs
