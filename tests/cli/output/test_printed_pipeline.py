"""`tiered optimize --print-pipeline`: which passes would run, and why the others would not."""

import dataclasses
import json
from typing import Any

import pytest

from tiered.cli.output.printed_pipeline import described_edit, print_edits, print_plan
from tiered.cli.prepared import PreparedRun
from tiered.cli.shared_options import OptimizeOptions
from tiered.pipeline import default_pipeline, parse_pipeline
from tiered.pipeline.edits import USER
from tiered.support.errors import PassNotFoundError
from tiered.targets import get_backend
from tiered.targets.pipeline_edits import edits_of


def plan(capsys: pytest.CaptureFixture[str], **options: Any) -> str:
    print_plan(PreparedRun.of(OptimizeOptions(**options)))
    return capsys.readouterr().out


def record(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan(capsys, json=True, **options))
    return found


def test_each_pass_has_a_line_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    said = plan(capsys, passes="inline,fold_constant{max_growth=2%}", disable=("inline",))
    lines = said.splitlines()
    assert lines[0] == "1 of 2 passes would run"
    skips, runs = lines[1:3]
    assert skips.startswith("  skips  inline                        ")
    assert "disabled" in skips
    assert runs.startswith("  runs   fold_constant{max_growth=2%}  ")
    assert lines[3:] == ["", "--passes 'inline,fold_constant{max_growth=2%}'"]


def test_one_pass_is_no_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(capsys, passes="inline").startswith("1 of 1 pass would run\n")


def test_the_default_pipeline_is_that_of_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    running = [record(capsys, opt_level=level)["passes"] for level in (0, 3)]
    counts = [sum(each["runs"] for each in passes) for passes in running]
    assert counts[0] < counts[1]
    assert len(running[0]) == len(running[1])


def test_the_record_has_the_pipeline_and_its_edits(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(
        capsys,
        passes="tidy(inline),fold_constant",
        edit=("drop inline", "before fold_constant: strip"),
    )
    pipeline = parse_pipeline(found["pipeline"])
    assert [leaf.name for leaf in pipeline.leaves()] == ["strip", "fold_constant"]
    assert found["digest"] == pipeline.digest
    assert found["backend"] == "portable"
    assert [edit["edit"] for edit in found["edits"]] == [
        "drop inline",
        "before fold_constant: strip",
    ]
    assert {edit["by"] for edit in found["edits"]} == {USER}
    assert any("inline" in line for line in found["diff"])
    assert [(each["pass"], each["groups"], each["runs"]) for each in found["passes"]] == [
        ("strip", ["user"], True), ("fold_constant", [], True),
    ]  # fmt: skip


def test_a_group_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    (inline,) = record(capsys, passes="tidy(inline)")["passes"]
    assert (inline["groups"], inline["reason"] != "") == (["tidy"], True)


def test_the_edits_of_a_backend_are_for_the_default_pipeline_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    backend = next(
        name
        for name in ("onnxruntime_cpu", "qnn_htp", "tensorrt", "openvino_npu")
        if get_backend(name).edits
    )
    default = record(capsys, backend=backend)
    assert default["backend"] == backend
    assert [each["by"] for each in default["edits"]] == [
        edit.by for edit in get_backend(backend).edits
    ]
    assert default["diff"]
    listed = record(capsys, backend=backend, passes="inline")
    assert (listed["edits"], listed["diff"]) == ([], [])
    assert record(capsys)["pipeline"] == str(default_pipeline())


def test_shapes_add_their_passes(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, passes="inline", dim=("n=4",))
    assert next(each["pass"].partition("{")[0] for each in found["passes"]) == "const_input_shape"


def test_edits_are_printed_with_their_author_and_reason(capsys: pytest.CaptureFixture[str]) -> None:
    edits = edits_of(["drop inline", "drop strip"], USER)
    print_edits([dataclasses.replace(edits[0], why="it is not needed"), edits[1]])
    assert capsys.readouterr().out.splitlines() == [
        "", "edits of the pipeline, in this order:",
        f"  {USER}: drop inline  # it is not needed", f"  {USER}: drop strip",
    ]  # fmt: skip
    print_edits([])
    assert capsys.readouterr().out == ""
    assert described_edit(edits[1]) == {"edit": "drop strip", "by": USER, "why": edits[1].why}


def test_a_wrong_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PassNotFoundError):
        plan(capsys, disable=("inlin",))
