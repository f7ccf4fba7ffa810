"""`tiered.prepare` in Python."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tests.extensions.preparation.test_done_step import done
from tests.small import parsed
from tiered import TargetError, UsageError, VerificationError
from tiered.extensions.preparation import preparing
from tiered.extensions.preparation.precisions import PrecisionOptions
from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.extensions.preparation.preparation_steps import PreparationStep
from tiered.testing import parse

TEXT = """(float[N,40] x) => (float[N,40] y) {
    i = Identity(x)  a = MatMul(i, w)  b = Erf(a)  y = MatMul(b, w) }"""


@pytest.fixture
def proto() -> onnx.ModelProto:
    model = parse(TEXT, opset=17)
    weight = np.random.default_rng(0).normal(0, 0.1, (40, 40)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


def test_a_proto_is_prepared_and_stays_as_it_is(proto: onnx.ModelProto) -> None:
    before = proto.SerializeToString()
    made = tiered.prepare(proto, to="fp16", dims={"N": 2}, opset=20)
    assert proto.SerializeToString() == before
    assert [each.step.name for each in made.done] == ["shapes", "opset", "optimise", "fp16"]
    assert made.is_verified
    assert str(made.promise) == "lossy"
    result = made.to_proto()
    assert result.opset_import[0].version == 20
    assert {tensor.data_type for tensor in result.graph.initializer} == {onnx.TensorProto.FLOAT16}
    assert made.interface[0] == "opset 17 -> 20"
    assert made.commands()[-1].startswith("tiered convert prepared.step")


def test_a_file_is_written_whole(proto: onnx.ModelProto, tmp_path: Path) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(proto, source)
    made = tiered.prepare(source, out, to=["int8-weights"], budget="cosine>=0.99")
    assert made.out == str(out)
    assert onnx.load(out) == made.to_proto()
    assert "int8-weights" in made.record()["commands"][-1]
    with pytest.raises(UsageError, match="is the model that is read"):
        tiered.prepare(source, source)


def test_samples_may_be_arrays(proto: onnx.ModelProto) -> None:
    random = np.random.default_rng(0)
    feeds = [{"x": random.normal(size=(3, 40)).astype(np.float32)} for _ in range(2)]
    made = tiered.prepare(proto, to="int8", inputs=feeds)
    assert "2 given inputs" in made.error
    assert "--inputs SAMPLES" in made.commands()[-1]
    with pytest.raises(UsageError, match="'z'"):
        tiered.prepare(proto, to="int8", inputs=[{"z": feeds[0]["x"]}])


def test_a_target_that_refuses_the_result_raises(proto: onnx.ModelProto, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    with pytest.raises(TargetError, match=r"int8_npu does not take the result"):
        tiered.prepare(proto, out, backend="int8_npu", dims={"N": 1})
    assert not out.exists()
    made = tiered.prepare(proto, backend="int8_npu", dims={"N": 1}, host=True)
    assert made.coverage is not None
    assert not made.coverage.is_met
    assert made.record()["target"]["gaps"]


def test_the_budget_is_of_the_whole(proto: onnx.ModelProto) -> None:
    with pytest.raises(VerificationError, match="budget"):
        tiered.prepare(proto, to="bf16", budget="max_abs<=0", keep_ops=["Erf"])


def test_a_model_that_nothing_changes_is_verified_as_that(proto: onnx.ModelProto) -> None:
    made = tiered.prepare(proto, opt_level=0)
    assert made.is_verified
    assert len(made.commands()) == 1
    assert str(made.promise) == "exact"


# --- the steps, without passes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "verify", "measures", "budget", "samples", "steps", "error"),
    [
        ((), "final", None, "", (), ["optimise final []"], ""),
        (("fp16",), "final", None, "", (), ["optimise final []", "fp16 final []"], "measured"),
        (("fp16",), "off", None, "", (), ["optimise off []", "fp16 off []"], ""),
        (("fp16",), "structure", None, "", (), ["optimise structure []", "fp16 structure []"], ""),
        (("fp16",), "off", True, "", (), ["optimise off []", "fp16 off []"], "measured"),
        (("fp16",), "final", False, "", (), ["optimise final []", "fp16 final []"], ""),
        (("fp16",), "off", None, "cosine>=0.9", (), ["optimise off []", "fp16 off []"],
         "measured in cosine>=0.9"),
        (("int32",), "final", None, "", (), ["optimise final []", "int32 final []"], ""),
        (("int8",), "final", None, "", (), ["optimise final []", "int8 final ['made']"],
         "measured"),
        (("int8",), "off", None, "", (), ["optimise off []", "int8 off []"], ""),
        (("int8",), "final", None, "", ("s.npz",), ["optimise final ('s.npz',)",
                                                  "int8 final ('s.npz',)"], "measured"),
    ],
)  # fmt: skip
def test_how_steps_are_verified_and_the_whole_is_measured(
    to: tuple[str, ...], verify: Any, measures: bool | None, budget: str, samples: tuple[str, ...],
    steps: list[str], error: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    asked: list[Any] = []
    views: list[Any] = []

    def optimize_model(view: Any, *, verify: str, inputs: Any, **settings: Any) -> None:
        views.append(view)
        asked.append(f"{verify} {inputs}")

    def measured_error(model: Any, *, inputs: Any, budget: Any) -> str:
        return "measured" + (f" in {budget}" if budget is not None else "")

    monkeypatch.setattr(preparing, "optimize_model", optimize_model)
    monkeypatch.setattr(preparing, "measured_error", measured_error)
    monkeypatch.setattr(preparing, "inputs_like_calibration", lambda view: ["made"])
    monkeypatch.setattr(
        preparing, "DoneStep", SimpleNamespace(of=lambda step, result, coverage: done(step))
    )
    model, said = parsed("(float[2] x) => (float[2] y) { y = Relu(x) }"), list[str]()
    options = PrepareOptions(to=to, precision=PrecisionOptions(budget=budget, inputs=samples))
    made = preparing.prepare_model(
        model, options, verify=verify, measures=measures, on_step=said.append
    )
    names = [each.step.name for each in made.done]
    assert [f"{name} {each}" for name, each in zip(names, asked, strict=True)] == steps
    assert made.error == error
    expected = [f"step {at} of {len(names)}: {name}" for at, name in enumerate(names, 1)]
    expected[0] += " for any runtime"
    assert said == [*expected, *(["measuring the whole"] if error else [])]
    assert views[0] is model
    assert all(view is not model for view in views[1:])
    assert made.coverage is None


def test_an_error_names_its_step_and_the_option_that_helps() -> None:
    half = PreparationStep(name="fp16", what="", command="convert", words=(), precision="fp16")
    other = PreparationStep(name="target", what="", command="optimize", words=())
    hint = "--budget states how far the outputs may move, as cosine>=0.99"
    place = "in step 2 of 3 of the preparation: "
    for error, step, budget, notes in (
        (VerificationError("x"), half, "", [hint, f"{place}fp16"]),
        (VerificationError("x"), half, "cosine>=0.9", [f"{place}fp16"]),
        (VerificationError("x"), other, "", [f"{place}target"]),
        (UsageError("x"), half, "", [f"{place}fp16"]),
    ):
        options = PrepareOptions(precision=PrecisionOptions(budget=budget))
        with pytest.raises(type(error)) as raised, preparing._named(step, 2, 3, options):
            raise error
        assert raised.value.__notes__ == notes


def test_a_model_is_not_written_over_itself(proto: onnx.ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    with pytest.raises(UsageError, match="is the model that is read; write to another file"):
        tiered.prepare(path, tmp_path / "x" / ".." / "m.onnx")
    preparing._check_out(proto, path)
    preparing._check_out(str(path), tmp_path / "other.onnx")


def test_samples_of_both_kinds_are_files(tmp_path: Path) -> None:
    with preparing._in_files(["a.npz", tmp_path]) as files:
        assert files == ("a.npz", str(tmp_path))
    with preparing._in_files([{"x": [1, 2]}, "a.npz", {"x": [3]}]) as files:
        name, folder = files
        assert name == "a.npz"
        made = {path.name: np.load(path)["x"].tolist() for path in Path(folder).iterdir()}
        assert made == {"000000.npz": [1, 2], "000001.npz": [3]}
    assert not Path(folder).exists()


def test_shapes_of_inputs_are_set(proto: onnx.ModelProto) -> None:
    made = tiered.prepare(proto, opt_level=0, input_shapes={"x": [2, 40]}, verify="off")
    assert [each.step.name for each in made.done] == ["shapes", "optimise"]
    dims = made.to_proto().graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [2, 40]
