"""The runtime that runs two models: another one than onnxruntime for halves, and why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tiered.extensions.debug.runtimes import Referee, refereed
from tiered.runtime.external_data import MOST_READ
from tiered.support.errors import (
    Crashed,
    MissingOperator,
    ModelError,
    OutOfMemory,
    RuntimeFailure,
    TimedOut,
    VerificationError,
)
from tiered.testing import parse

PLAIN = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
HALF = parse("(float16[2] x) => (float16[2] y) { y = Neg(x) }")
BRAIN = parse("(bfloat16[2] x) => (bfloat16[2] y) { y = Neg(x) }")
FEW = parse("(float[2] x) => (float8e4m3fn[2] y) { y = Cast<to=17>(x) }")
REFUSED = parse("(float[2] x) => (float[2] y) { y = com.acme.Own(x) }")

NODES = "onnxruntime node by node"
HALVES = "as a model has 16-bit floats, which onnxruntime computes in 32 bits"


def failing(*names: str, error: Exception | None = None) -> Callable[[Referee], str]:
    """Return a comparison that fails on some runtimes, else returns the words on the runtime."""

    def compare(referee: Referee) -> str:
        if referee.runtime in names:
            raise error or RuntimeFailure(f"{referee.runtime} fails\nhere")
        return str(referee)

    return compare


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (PLAIN, PLAIN, "onnxruntime"),
        (HALF, PLAIN, f"onnx.reference, {HALVES}"),
        (PLAIN, BRAIN, f"onnx.reference, {HALVES}"),
        (PLAIN, FEW, "onnx.reference, as a model has floats of 8 bits or fewer"),
    ],
    ids=["plain", "half", "bfloat16", "few"],
)
def test_the_dtypes_of_both_models_decide(first: Any, second: Any, said: str) -> None:
    assert refereed(first, second, failing()) == said


def test_halves_go_node_by_node_where_the_reference_fails() -> None:
    said = refereed(HALF, PLAIN, failing("onnx.reference"))
    assert said == (f"{NODES}, {HALVES}; onnx.reference does not run both (onnx.reference fails)")
    last = refereed(HALF, PLAIN, failing("onnx.reference", NODES))
    assert last.startswith(f"onnxruntime, which may hide overflow and rounding, {HALVES}; onnx.ref")


@pytest.mark.parametrize("error", [ModelError("no"), VerificationError("no"), RuntimeFailure("no")])
def test_each_way_of_not_running_goes_on(error: Exception) -> None:
    said = refereed(HALF, HALF, failing("onnx.reference", NODES, error=error))
    assert said.startswith("onnxruntime, which may hide")


def test_another_error_of_a_comparison_is_passed_on() -> None:
    with pytest.raises(ValueError, match="mine"):
        refereed(HALF, HALF, failing("onnx.reference", error=ValueError("mine")))
    with pytest.raises(RuntimeFailure, match="onnxruntime fails"):
        refereed(HALF, HALF, failing("onnx.reference", NODES, "onnxruntime"))


def test_a_model_that_onnxruntime_does_not_load_goes_to_the_reference() -> None:
    said = refereed(REFUSED, PLAIN, failing("onnxruntime"))
    assert said == (
        "onnx.reference, as onnxruntime does not load the first model (onnxruntime fails)"
    )


def test_a_failure_of_a_model_that_loads_is_passed_on() -> None:
    with pytest.raises(RuntimeFailure, match="onnxruntime fails"):
        refereed(PLAIN, REFUSED, failing("onnxruntime"))


@pytest.mark.parametrize("kind", [MissingOperator, Crashed, TimedOut, OutOfMemory])
def test_failures_that_another_runtime_does_not_mend_are_passed_on(kind: Any) -> None:
    with pytest.raises(kind):
        refereed(REFUSED, PLAIN, failing("onnxruntime", error=kind("no")))


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx.reference", NODES])
def test_each_runtime_runs_a_model(runtime: str) -> None:
    model = parse("""<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = own.f(x)  y = Add(a, w) }
        <domain: "own", opset_import: ["" : 21]> f (x) => (y) { y = Neg(x) }""")
    with Referee(runtime).open(model) as session:
        found = session.run({"x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(found["y"], [0, 0])
    assert model.graph.initializer[0].name == "w"


def test_a_model_too_large_for_the_reference_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.extensions.debug.runtimes.bytes_on_disk", lambda proto: 3 << 40)
    with (
        pytest.raises(RuntimeFailure, match=r"the weights have 3,145,728 MiB, more than onnx.ref"),
        Referee("onnx.reference").open(PLAIN),
    ):
        pass


def test_the_words_on_a_runtime_have_the_reason_if_there_is_one() -> None:
    assert str(Referee()) == "onnxruntime"
    assert str(Referee("onnx.reference", "as it rains")) == "onnx.reference, as it rains"


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx.reference", NODES])
def test_weights_are_beside_the_file_or_in_the_folder(runtime: str, tmp_path: Path) -> None:
    model = parse("(float[2] x) => (float[2] y) <float[2] w> { y = Add(x, w) }")
    del model.graph.initializer[:]
    weight = onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    model.graph.initializer.append(weight)
    path = str(tmp_path / "m.onnx")
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    proto = onnx.load(path, load_external_data=False)
    for source, folder in ((path, ""), (proto, str(tmp_path))):
        with Referee(runtime).open(source, folder) as session:
            found = session.run({"x": np.array([1, 2], np.float32)})
        np.testing.assert_array_equal(found["y"], [2, 4])


def test_the_reference_is_given_weights_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "tiered.extensions.debug.runtimes.bytes_on_disk"
    monkeypatch.setattr(place, lambda proto: MOST_READ)
    with Referee("onnx.reference").open(PLAIN) as session:
        assert [*session.inputs] == ["x"]
    monkeypatch.setattr(place, lambda proto: MOST_READ + 1)
    with pytest.raises(RuntimeFailure), Referee("onnx.reference").open(PLAIN):
        pass
