"""What measurements depend on: sizes of dims, and the user's samples."""

from typing import Any

import numpy as np
import pytest

from tiered.extensions.measurement.latency_bench import How
from tiered.extensions.tuning import machine
from tiered.extensions.tuning.machine import digest_of_arrays, machine_text, sizes_text
from tiered.testing import parse

X = np.zeros((3, 2, 5), np.float32)


def test_sizes_are_those_of_dynamic_dims() -> None:
    model = parse("(float[n,2,?] x, float[2] z) => (float[n,2,?] y) { y = Add(x, z) }")
    feeds = {"x": X, "z": X[0, :, 0]}
    assert sizes_text(model, [feeds]) == "n=3, x[2]=5"
    assert sizes_text(model, [feeds, {"x": X[:1], "z": None}]) == "n=3, x[2]=5; n=1, x[2]=5"
    fixed = parse("(float[3] x) => (float[3] y) { y = Relu(x) }")
    assert sizes_text(fixed, [{"x": X[:, 0, 0]}]) == ""


@pytest.mark.parametrize(
    "other",
    [
        {"y": X},
        {"x": X + 1},
        {"x": X.astype(np.int32)},
        {"x": X.reshape(2, 3, 5)},
        {"x": [X]},
        {"x": None},
        {"x": np.array(["a"], object)},
    ],
)
def test_samples_are_known_by_names_types_and_numbers(other: dict[str, Any]) -> None:
    assert digest_of_arrays([]) == ""
    assert digest_of_arrays([{"x": X}]) == digest_of_arrays([{"x": X.copy()}])
    assert digest_of_arrays([{"x": X}]) != digest_of_arrays([other])
    assert digest_of_arrays([other]) != digest_of_arrays([other, other])


def test_what_measures_is_part_of_the_machine() -> None:
    assert "onnxruntime" in machine_text(How(), "latency", None)
    assert machine_text(How(), "latency", "npu {model}").endswith("measured by npu {model}")


def test_all_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: None)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "arm")
    monkeypatch.setattr(machine, "__version__", "1")
    for name, shown in (("", "arm"), ("chip", "chip")):
        monkeypatch.setattr(machine, "processor_name", lambda name=name: name)
        assert machine_text(How(), "size", "a judge") == (
            f"tiered 1, {shown}, 1 core, Linux, size, measured by a judge"
        )
