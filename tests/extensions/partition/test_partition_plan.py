"""Plans: parts that run one after the other, their files, and what is no plan."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.partition.graphs import model
from tiered import ModelError, UsageError
from tiered.extensions.partition import OperatorSupport, Plan, as_models, propose_partitions

SANDWICH = (
    "g (float[2] x) => (float[2] y, float[2] b) <float[2] w = {1,2}> "
    "{ a = Add(x, w)  b = Sin(a)  c = Neg(b)  d = Cos(c)  y = Sub(d, w) }"
)
X = np.array([1, 2], np.float32)


def plan_of(text: str = SANDWICH, *operators: str) -> Plan:
    of = model(text)
    support = OperatorSupport(dict.fromkeys(operators or ("Add", "Neg")))
    parts = propose_partitions(of, {"npu": support}, allows_single_node_partition=True)
    return as_models(of, parts)


def test_missing_and_unknown_inputs_are_errors() -> None:
    plan = as_models(model(SANDWICH), [])
    with pytest.raises(UsageError, match="'x' is missing"):
        plan.run({})
    with pytest.raises(UsageError, match="no input 'z'"):
        plan.run({"x": np.array([1, 2], np.float32), "z": 1})


def test_a_folder_without_a_plan_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot read"):
        Plan.load(tmp_path)
    malformed = {"{": "is no plan", '{"format": 7}': "format 7", '{"format": 1}': "parts"}
    for text, reason in malformed.items():
        (tmp_path / "plan.json").write_text(text)
        with pytest.raises(ModelError, match=reason):
            Plan.load(tmp_path)


def test_a_saved_plan_loads_and_runs(tmp_path: Path) -> None:
    plan = plan_of().save(tmp_path)
    again = Plan.load(tmp_path)
    assert again.described() == plan.described()
    assert again.folder == str(tmp_path)
    for name, array in plan.run({"x": X}).items():
        np.testing.assert_array_equal(again.run({"x": X})[name], array)


def test_the_file_of_a_part_has_its_name() -> None:
    assert [part.file for part in plan_of().parts] == [
        "part_000_npu.onnx", "part_001_host.onnx", "part_002_npu.onnx", "part_003_host.onnx",
    ]  # fmt: skip


def test_the_source_of_an_input_is_a_part_or_the_caller() -> None:
    plan = plan_of()
    assert [plan.sources(part) for part in plan.parts] == [
        {"x": ""}, {"a": "000_npu"}, {"b": "001_host"}, {"c": "002_npu"},
    ]  # fmt: skip


def test_a_plan_runs_part_by_part() -> None:
    plan = plan_of()
    found = plan.run({"x": X})
    b = np.sin(X + np.array([1, 2], np.float32))
    np.testing.assert_allclose(found["b"], b, rtol=1e-6)
    np.testing.assert_allclose(found["y"], np.cos(-b) - [1, 2], rtol=1e-6)
    assert list(found) == ["y", "b"]


def test_what_is_described_is_all_that_a_plan_needs() -> None:
    said = plan_of().described()
    assert {key: said[key] for key in said if key != "parts"} == {
        "format": 1, "inputs": ["x"], "optional_inputs": [], "outputs": ["y", "b"],
        "host": "host.onnx",
    }  # fmt: skip
    assert said["parts"][2] == {
        "name": "002_npu", "target": "npu", "file": "part_002_npu.onnx", "nodes": 1,
        "inputs": {"b": "001_host"}, "outputs": ["c"],
    }  # fmt: skip


def test_files_of_an_earlier_plan_are_removed_and_no_others(tmp_path: Path) -> None:
    first = plan_of().save(tmp_path)
    assert first.folder == str(tmp_path)
    (tmp_path / "part_009_mine.onnx").write_text("mine")
    second = plan_of(SANDWICH, "Add")
    assert second.stale_files(str(tmp_path)) == ["part_002_npu.onnx", "part_003_host.onnx"]
    second.save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "plan.json", "host.onnx", "part_000_npu.onnx", "part_001_host.onnx", "part_009_mine.onnx",
    }  # fmt: skip
    assert second.stale_files(str(tmp_path)) == []


def test_a_plan_names_no_file_outside_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    plan = plan_of().save(folder)
    (tmp_path / "part_x.onnx").write_text("mine")
    said = plan.described()
    said["parts"][0]["file"] = "../part_x.onnx"
    said["parts"][0]["name"] = "/../../part_x"
    (folder / "plan.json").write_text(json.dumps(said))
    assert "../part_x.onnx" not in plan.stale_files(str(folder))
    with pytest.raises(ModelError, match=r"a part has the name '/../../part_x'"):
        Plan.load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"parts": 1}', '{"parts": [1]}', "{}"])
def test_a_file_that_is_no_plan_has_no_stale_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    assert plan_of().stale_files(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "has the format 2; expected 1"),
        ({"parts": [{}]}, "'name'"),
        ({"parts": 3}, "is no plan"),
        ({"inputs": 3}, "is no plan"),
    ],
)
def test_a_plan_that_lacks_something_is_an_error(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    plan = plan_of().save(tmp_path)
    (tmp_path / "plan.json").write_text(json.dumps({**plan.described(), **change}))
    with pytest.raises(ModelError, match=reason):
        Plan.load(tmp_path)


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text("")
    with pytest.raises(ModelError, match="cannot write the plan to"):
        plan_of().save(tmp_path / "plan")


def test_a_list_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(ModelError, match="has the format None; expected 1"):
        Plan.load(tmp_path)
