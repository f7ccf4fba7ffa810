"""The events of onnxruntime's profile."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiered.extensions.measurement.profile.kernel_events import Shape, read_events
from tiered.support.errors import RuntimeFailure


def node(name: str, op_type: str, start: int, duration: int, index: int = 0) -> dict[str, Any]:
    return {
        "cat": "Node",
        "name": f"{name}_kernel_time",
        "ts": start,
        "dur": duration,
        "args": {
            "op_name": op_type,
            "provider": "CPUExecutionProvider",
            "node_index": str(index),
            "input_type_shape": [{"float": [1, 4]}, {"float": [4, 2]}],
            "output_type_shape": [{"float": [1, 2]}],
            "activation_size": "16",
            "parameter_size": "32",
            "output_size": "8",
        },
    }


def run(start: int, duration: int) -> dict[str, Any]:
    return {"cat": "Session", "name": "model_run", "ts": start, "dur": duration, "args": {}}


def written(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "profile.json"
    path.write_text(json.dumps(events))
    return path


def test_runs_that_warm_up_do_not_count(tmp_path: Path) -> None:
    events = (
        node("a", "MatMul", 10, 50), run(5, 60), node("a", "MatMul", 110, 20), run(105, 40),
    )  # fmt: skip
    found = read_events(written(tmp_path, *events), skip=1)
    (only,) = found.runs
    assert only.seconds == pytest.approx(40e-6)
    assert only.nodes == {(("a", 0),): pytest.approx(20e-6)}
    (kernel,) = found.kernels.values()
    assert (kernel.name, kernel.op_type, kernel.nbytes) == ("a", "MatMul", 56)
    assert kernel.inputs == (Shape("float", (1, 4)), Shape("float", (4, 2)))
    assert str(kernel.outputs[0]) == "float[1,2]"


def test_the_time_of_a_body_is_not_that_of_its_owner(tmp_path: Path) -> None:
    events = (
        node("inner", "Add", 12, 10, 1), node("inner", "Add", 30, 15, 1), node("l", "Loop", 10, 50),
        node("inner", "Add", 70, 5, 2), run(5, 80),
    )  # fmt: skip
    (only,) = read_events(written(tmp_path, *events)).runs
    loop, inside, beside = ("l", 0), ("inner", 1), ("inner", 2)
    assert only.nodes[(loop,)] == pytest.approx(25e-6)
    assert only.nodes[(loop, inside)] == pytest.approx(25e-6)
    assert (only.calls[(loop,)], only.calls[(loop, inside)]) == (1, 2)
    assert only.nodes[(beside,)] == pytest.approx(5e-6)


def test_of_equal_times_the_owner_is_the_one_that_ended_last(tmp_path: Path) -> None:
    events = (node("inner", "Add", 10, 20), node("if", "If", 10, 20, 3), run(5, 30))
    (only,) = read_events(written(tmp_path, *events)).runs
    assert set(only.nodes) == {(("if", 3),), (("if", 3), ("inner", 0))}


def test_a_node_without_bodies_owns_nothing(tmp_path: Path) -> None:
    events = (node("a", "Add", 10, 0), node("b", "Mul", 10, 9, 1), run(5, 30))
    (only,) = read_events(written(tmp_path, *events)).runs
    assert set(only.nodes) == {(("a", 0),), (("b", 1),)}


def test_a_profile_that_is_not_whole_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text("[{")
    with pytest.raises(RuntimeFailure, match="wrote no whole profile"):
        read_events(path)
    with pytest.raises(RuntimeFailure, match="has 1 run; expected 2"):
        read_events(written(tmp_path, run(5, 30)), skip=1)


def test_what_is_no_kernel_is_no_node_and_what_begins_at_an_end_is_beside(tmp_path: Path) -> None:
    fence = {**node("a", "Add", 11, 1), "name": "a_fence_before"}
    other = {**node("b", "Add", 12, 1), "cat": "Session"}
    events = (
        fence, other, node("loop", "Loop", 10, 20), node("c", "Add", 30, 5, 1),
        node("d", "Add", 29, 1, 2), node("e", "Scan", 40, 10, 3), node("f", "Add", 45, 2, 4),
        run(5, 60),
    )  # fmt: skip
    found = read_events(written(tmp_path, *events))
    (only,) = found.runs
    assert only.calls == {
        (("loop", 0),): 1, (("c", 1),): 1, (("loop", 0), ("d", 2)): 1, (("e", 3),): 1,
        (("e", 3), ("f", 4)): 1,
    }  # fmt: skip
    assert only.nodes[(("loop", 0),)] == pytest.approx(19e-6)
    inner = [keys[-1][0] for keys, kernel in found.kernels.items() if kernel.is_inner]
    assert sorted(inner) == ["d", "f"]
