"""The passes of PopRT that compare with another model."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import tiered
from tests.small import proto
from tiered.compat import poprt
from tiered.compat.poprt.with_models import check_with_fake_data, layer_precision_compare
from tiered.support.errors import UsageError, VerificationError


def test_outputs_are_compared_with_those_of_a_model() -> None:
    wrong = proto("g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }")
    poprt.get_pass("check_with_fake_data", origin_model=proto())(proto())
    for check in (
        poprt.get_pass("check_with_fake_data", wrong),
        poprt.get_pass("check_with_fake_data", origin_model=wrong),
    ):
        with pytest.raises(VerificationError, match="computes something else"):
            check.run(proto())


def test_random_operators_are_skipped_as_poprt_does() -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { a = Identity(x)  y = RandomNormalLike(a) }"
    checked = poprt.get_pass("check_with_fake_data", origin_model=proto(text))
    after = tiered.optimize(proto(text), passes=["eliminate_identity"])
    assert checked.run(after).graph.node[0].op_type == "RandomNormalLike"


LAYERS = """g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
    h = MatMul(x, w)  y = Relu(h) }"""


def test_layers_are_compared_with_those_of_a_model(tmp_path: Path) -> None:
    other = proto(LAYERS.replace("3,4", "3,5"))
    np.savez(tmp_path / "x.npz", x=np.ones((2, 2), np.float32))
    data = str(tmp_path / "x.npz")
    check = poprt.get_pass("layer_precision_compare", other, data, output_dir=str(tmp_path))
    with tiered.PassContext() as ctx:
        check(proto(LAYERS))
    assert "MatMul h: max abs 1" in str(ctx.remarks)
    (row,) = json.loads((tmp_path / "layer_precision.json").read_text())
    assert (row["layer"], row["operator"], row["max_abs"]) == ("h", "MatMul", 1.0)
    assert 0 < row["cosine"] < 0.1
    with pytest.raises(UsageError, match="to load a pickle runs code"):
        poprt.get_pass("layer_precision_compare", other, "data.pkl")


def test_a_model_of_a_file_is_compared(tmp_path: Path) -> None:
    onnx.save(proto(LAYERS), tmp_path / "m.onnx")
    data = str(tmp_path / "x.npz")
    np.savez(data, x=np.zeros((2, 2), np.float32))
    check = layer_precision_compare(str(tmp_path / "m.onnx"), data, output_dir=str(tmp_path))
    check.apply(proto(LAYERS.replace("3,4", "3,5")))
    rows = json.loads((tmp_path / "layer_precision.json").read_text())
    assert rows == [{"layer": "h", "operator": "MatMul", "max_abs": 0.0, "cosine": 0.0}]


def test_every_product_is_compared_with_that_of_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
        a = MatMul(x, w)  y = MatMul(a, w) }"""
    halves = tiered.get_pass("float_to_half").apply(proto(text))
    monkeypatch.chdir(tmp_path)
    poprt.get_pass("layer_precision_compare", proto(text))(halves)
    rows = json.loads((tmp_path / "layer_precision.json").read_text())
    assert [(row["layer"], row["operator"]) for row in rows] == [("a", "MatMul"), ("y", "MatMul")]


TWO = """g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
    h = MatMul(x, w)  g = Gemm(h, w)  y = Relu(g) }"""


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        (None, ["h", "g"]),
        ({"operators": "Gemm"}, ["g"]),
        ({"operators": ["MatMul"]}, ["h"]),
        ({"operators": ["Relu", "Gemm"]}, ["g", "y"]),
        ({"operators": "MatMulInteger"}, []),
    ],
)
def test_layers_of_some_operators_are_compared(
    tmp_path: Path, options: dict[str, object] | None, layers: list[str]
) -> None:
    data = {"x": np.ones((2, 2), np.float32)}
    layer_precision_compare(proto(TWO), data, options, str(tmp_path / "new")).apply(proto(TWO))
    rows = json.loads((tmp_path / "new" / "layer_precision.json").read_text())
    assert [row["layer"] for row in rows] == layers
    assert all(row["max_abs"] == 0 and abs(row["cosine"]) < 1e-6 for row in rows)


def test_integers_have_no_cosine(tmp_path: Path) -> None:
    model = proto("""g (uint8[2,2] x) => (int32[2,2] y) <uint8[2,2] w = {1,2,3,4}> {
        y = MatMulInteger(x, w) }""")
    data, options = {"x": np.ones((2, 2), np.uint8)}, {"operators": "MatMulInteger"}
    layer_precision_compare(model, data, options, str(tmp_path)).apply(model)
    rows = json.loads((tmp_path / "layer_precision.json").read_text())
    assert rows == [{"layer": "y", "operator": "MatMulInteger", "max_abs": 0.0, "cosine": None}]


@pytest.mark.parametrize("data", ["data.pkl", "x.npz.gz", ""])
def test_inputs_are_no_pickles(data: str) -> None:
    with pytest.raises(UsageError, match=f"reads inputs from a .npz file, not from '{data}'"):
        layer_precision_compare(proto(TWO), data)


def test_a_comparison_takes_the_tolerance_of_its_caller() -> None:
    other = proto(TWO.replace("3,4", "3,4.0001"))
    check_with_fake_data(other, rtol=0.1, atol=0.1).apply(proto(TWO))
    with pytest.raises(VerificationError):
        check_with_fake_data(other, rtol=0, atol=0).apply(proto(TWO))
