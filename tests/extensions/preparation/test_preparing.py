"""`tiered.prepare` in Python."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tiered import TargetError, UsageError, VerificationError
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
