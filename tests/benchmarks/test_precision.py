"""The benchmark of half precision judges what it says, on models that take no time."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks import precision
from tiered.testing import parse

TEXT = "(float[2,2] x) => (float[2,2] y) <float k = {0.3}> { a = Exp(x) y = Mul(a, k) }"
FEEDS = [{"x": np.array([[0, 1], [2, 3]], np.float32)}]


def test_it_prints_a_row_for_each_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(parse(TEXT), tmp_path / "small.onnx")
    found = precision.main(tmp_path, ["tiered"], sys.executable)
    result = found["small"]["tiered"]
    assert (result.failure, result.casts) == ("", 2)
    assert 0 < result.error < 1e-3
    printed = capsys.readouterr().out
    assert "| tiered | 1 of 1 |" in printed
    assert f"| small | {result.error:.2e}, +2 | 1.00 |" in printed


def test_a_tool_that_fails_is_not_valid(tmp_path: Path) -> None:
    file = tmp_path / "small.onnx"
    onnx.save(parse(TEXT), file)
    result = precision.measured("onnxslim", file, sys.executable, FEEDS)
    assert result.failure.startswith("convert: ") or result.failure == "other inputs or outputs"


@pytest.mark.parametrize(
    ("other", "failure"),
    [
        (TEXT.replace("0.3", "0.4"), "error 3.3e-01"),
        (TEXT.replace("0.3", "nan"), "error inf"),
        (TEXT.replace("(float[2,2] y)", "(float[2,2] z)").replace("y =", "z ="), "other inputs"),
        ("(float[2,2] x) => (float[2,2] y) { y = Cast<to = 10>(x) }", "check: "),
    ],
)
def test_results_that_are_not_valid(tmp_path: Path, other: str, failure: str) -> None:
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(parse(TEXT), before)
    onnx.save(parse(other), after)
    assert precision.judged(before, after, FEEDS).failure.startswith(failure)


def test_mixed_precision_and_lists_of_operators_are_tools(tmp_path: Path) -> None:
    onnx.save(parse(TEXT), tmp_path / "small.onnx")
    tools = ["tiered mixed", "onnxruntime.transformers, listed"]
    found = precision.main(tmp_path, tools, sys.executable)["small"]
    assert [found[tool].casts for tool in tools] == [2, 4]  # Exp is listed
    assert not found["tiered mixed"].failure


def test_the_table_of_models_names_what_is_not_valid() -> None:
    good = precision.Result("", 3e-4, 2, 0.5)
    wrong = precision.Result("check: no", casts=4)
    results = {"a": good, "b": good._replace(error=2e-4), "c": wrong}
    text = precision.table_of_models({"net": results})
    assert text.endswith("| net | 3.00e-04, +2 | 2.00e-04, +2 | (check, +4) | 1.50 |")


def test_errors_of_samples_have_a_geometric_mean() -> None:
    assert precision.geometric_mean([1e-4, 1e-2]) == pytest.approx(1e-3)
    assert precision.geometric_mean([0.0, 1e-2]) == 0
