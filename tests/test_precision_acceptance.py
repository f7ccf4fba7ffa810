"""tests.conformance.precision judges what it says, on a model that takes no time."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.conformance import precision
from tests.conformance.inputs import with_masked_row
from tests.module_passes.precision.weights import with_weight
from tiered import Model, PassContext, module_pass

TEXT = (
    "(float[N,64] x, int64[N] mask) => (float[N,64] y) { "
    "a = MatMul(x, w) k = Cast<to = 1>(mask) i = Unsqueeze(k, one) y = Mul(a, i) }"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    model = with_weight(TEXT, (64, 64), opset=17)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "one"))
    path = tmp_path / "small.onnx"
    onnx.save(model, path)
    ones = {"kind": "randint", "low": 1, "high": 2}
    entries = [
        {"name": "x", "dtype": "float32", "shape": [2, 64], "fill": {"kind": "normal"}},
        {"name": "mask", "dtype": "int64", "shape": [2], "fill": ones},
    ]
    path.with_suffix(".json").write_text(json.dumps({"inputs": entries}))
    return path


def test_a_model_without_failures(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        precision.main(models=file.parent)
    printed = capsys.readouterr().out
    assert (ended.value.code, "0 failures" in printed) == (0, True), printed
    row = next(line for line in printed.splitlines() if line.startswith("| small |"))
    cells = dict(zip(precision.COLUMNS, row.split(" | ")[1:], strict=True))
    assert cells["Casts"] == "+2 of 2"
    assert cells["float8"].rstrip(" |").endswith(" dB")
    assert cells["a row masked"] == ""  # no input is a mask


def test_a_pass_that_changes_outputs_fails(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @module_pass(opt_level=None)
    def wrong(model: Model, ctx: PassContext, *, budget: str = "", to: int = 0) -> None:
        (product,) = model.main.nodes_of("Mul")
        model.main.set_input(product, 0, model.main.op.Neg(product.inputs[0]))

    monkeypatch.setattr(precision, "get_pass", lambda name: wrong)
    failures = precision.judge(file).failures
    for kind in ("float_to_half: error", "float_to_mixed: cosine", "int64_to_int32: y differs"):
        assert any(failure.startswith(kind) for failure in failures), failures


def test_the_first_row_of_a_mask_is_zero(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    feeds = {"x": np.ones((2, 3)), "keep": np.ones((2, 3), np.int64)}
    assert with_masked_row(path, feeds) is None
    kinds = {"x": "normal", "keep": "mask"}
    entries = [{"name": name, "fill": {"kind": kind}} for name, kind in kinds.items()]
    path.with_suffix(".json").write_text(json.dumps({"inputs": entries}))
    masked = with_masked_row(path, feeds)
    assert masked is not None
    assert masked["keep"].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert feeds["keep"].all()
