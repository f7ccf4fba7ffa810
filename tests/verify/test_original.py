"""An original that onnxruntime does not load: it is named, and onnx.reference runs it instead."""

import pytest

from tests.small import proto
from tiered import Graph, Pass, Value, op, optimize_model, rewrite, var
from tiered.extensions.debug import compare_models
from tiered.support.errors import NotVerifiable, TargetError, VerificationError

# onnxruntime has no Conv of doubles, and refuses two nodes of one name.
DOUBLES = """g (double[1,1,4,4] x) => (double[1,1,3,3] y) <double[1,1,2,2] w = {1, 2, 3, 4}> {
    a = Identity(x)  c = Conv(a, w)  y = Relu(c) }"""
TWICE = "g (float[3] x) => (float[3] y) { [n] a = Identity(x)  [n] b = Neg(a)  y = Relu(b) }"


@rewrite(op.Relu(var.x), opt_level=1)
def relu_to_abs(graph: Graph, x: Value) -> Value:
    """Wrong for what is negative."""
    return graph.op.Abs(x)


@pytest.mark.parametrize("text", [DOUBLES, TWICE])
def test_onnx_reference_runs_what_onnxruntime_does_not_load(text: str) -> None:
    result = optimize_model(proto(text), passes=["eliminate_identity"], verify=True)
    assert result.verify is not None
    assert result.verify.verdict.word == "yes"
    (way,) = result.verify.ways
    assert way.judge == "onnx.reference"
    (said,) = (str(remark) for remark in result.remarks if remark.kind == "verify")
    assert "onnx.reference runs the model, as onnxruntime does not load the original" in said


def test_a_wrong_pass_is_found_there_too() -> None:
    wrong: list[Pass | str] = ["eliminate_identity", relu_to_abs]
    with pytest.raises(VerificationError, match="relu_to_abs changed output 'y'"):
        optimize_model(proto(DOUBLES), passes=wrong, verify=True)


def test_where_neither_runs_it_the_original_is_named() -> None:
    model = proto("g (float[3] x) => (float[3] y) { a = Identity(x)  b = Neg(a)  y = Constant() }")
    with pytest.raises(NotVerifiable, match="not verified: neither runtime runs the original"):
        optimize_model(model, passes=["eliminate_identity"], verify=True)


def test_two_models_are_compared_there_too() -> None:
    found = compare_models(proto(TWICE), proto(TWICE))
    assert found.ok
    assert found.referee.runtime == "onnx.reference"
    assert "onnxruntime does not load the first model" in found.referee.why
    other = proto(TWICE.replace("Relu", "Abs"))
    assert not compare_models(proto(TWICE), other).ok


def test_a_model_without_outputs_has_nothing_to_compare() -> None:
    given = proto("g (float[2] x) => (float[2] y) { a = Relu(x)  y = Neg(a) }")
    given.graph.ClearField("output")
    with pytest.raises(TargetError, match=r"not verified: .*: the model has no outputs"):
        optimize_model(given, verify=True)
