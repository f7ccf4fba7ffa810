"""What a doctor found: whether a model is legal, whether there is a way, and the commands."""

from typing import Any

import pytest

from tests.extensions.preparation.test_done_step import NONE, done
from tests.small import parsed
from tiered import Backend
from tiered.extensions.preparation.diagnosis import Diagnosis, Suggestion, partition_line
from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.extensions.preparation.preparation_result import Prepared
from tiered.extensions.preparation.preparation_steps import PreparationStep
from tiered.extensions.preparation.remedies import Remedy
from tiered.graph import Model
from tiered.pipeline.result import ModelStatistics
from tiered.targets import Coverage
from tiered.targets.operator_rule import Bounds, OperatorRule

STEP = PreparationStep(name="target", what="", command="optimize", words=("--backend", "npu"))
MODEL = "(float[2] x) => (float[2] y) { a = Relu(x)  y = Erf(a) }"


def model() -> Model:
    return parsed(MODEL)


def coverage(*operators: str, opset: Bounds | None = None) -> Coverage:
    rules = {("", each): (OperatorRule(),) for each in operators}
    more = {} if opset is None else {"opset": opset}
    return Backend(name="npu", operators=rules, **more).coverage(model())  # type: ignore[arg-type]  # one


ALL, SOME, NOTHING = ("Relu", "Erf"), ("Relu",), ("Sin",)


def diagnosis(before: Coverage | None, after: Coverage | None, **more: Any) -> Diagnosis:
    made = Prepared(
        model=model(), options=PrepareOptions(backend="npu", opset=17), done=(done(STEP),),
        before=NONE, after=ModelStatistics(2, {}, 0, 9), seconds=0.0, coverage=after,
    )  # fmt: skip
    given: dict[str, Any] = {
        "source": "in.onnx", "backend": "npu", "statistics": NONE, "complaint": "",
        "remedies": (), "complaint_after": "", "failed": (), "suggestions": (),
    }  # fmt: skip
    return Diagnosis(coverage=before, made=made, **{**given, **more})


@pytest.mark.parametrize(
    ("before", "after", "is_legal", "is_legal_after", "has_a_way"),
    [
        (ALL, ALL, True, True, True),
        (SOME, ALL, False, True, True),
        (SOME, SOME, False, False, True),
        (NOTHING, NOTHING, False, False, False),
        (ALL, NOTHING, True, False, True),
        (NOTHING, SOME, False, False, True),
    ],
)
def test_a_target_takes_all_or_a_part_or_nothing(
    before: tuple[str, ...],
    after: tuple[str, ...],
    *,
    is_legal: bool,
    is_legal_after: bool,
    has_a_way: bool,
) -> None:
    found = diagnosis(coverage(*before), coverage(*after))
    assert (found.is_legal, found.is_legal_after, found.has_a_way) == (
        is_legal, is_legal_after, has_a_way
    )  # fmt: skip


def test_a_part_of_a_model_that_is_refused_itself_is_no_way() -> None:
    old = coverage(*SOME, opset=Bounds(13, 17))
    assert not diagnosis(old, old).has_a_way
    assert not diagnosis(coverage(*ALL, opset=Bounds(13, 17)), old).is_legal


@pytest.mark.parametrize(
    ("complaint", "after", "is_legal", "is_legal_after"),
    [("", "", True, True), ("no", "", False, True), ("no", "no", False, False)],
)
def test_without_a_target_a_runtime_opens_it_or_not(
    complaint: str, after: str, *, is_legal: bool, is_legal_after: bool
) -> None:
    found = diagnosis(None, None, complaint=complaint, complaint_after=after, backend="")
    assert (found.is_legal, found.is_legal_after) == (is_legal, is_legal_after)
    assert found.has_a_way == (is_legal or is_legal_after)


def test_the_commands_end_with_a_cut_where_nodes_are_refused() -> None:
    whole = diagnosis(coverage(*SOME), coverage(*ALL))
    assert whole.commands("dir/o.onnx") == ["tiered optimize in.onnx dir/o.onnx --backend npu"]
    part = diagnosis(coverage(*SOME), coverage(*SOME))
    assert part.commands("dir/o.onnx") == [
        "tiered optimize in.onnx dir/o.onnx --backend npu",
        "tiered partition dir/o.onnx --backend npu --as-models dir/o.parts",
    ]


def test_there_are_no_commands_if_nothing_is_wrong_or_nothing_helps() -> None:
    assert diagnosis(coverage(*ALL), coverage(*ALL)).commands() == []
    assert diagnosis(coverage(*NOTHING), coverage(*NOTHING)).commands() == []


def test_one_line_does_all_but_cutting() -> None:
    whole = diagnosis(coverage(*SOME), coverage(*ALL))
    assert whole.line("o.onnx") == "tiered prepare in.onnx o.onnx --for npu --opset 17"
    part = diagnosis(coverage(*SOME), coverage(*SOME))
    assert part.line() == "tiered prepare in.onnx out.onnx --for npu --opset 17 --host"


@pytest.mark.parametrize(
    ("file", "folder"),
    [("o.onnx", "o.parts"), ("a.b/o", "a.b/o.parts"), ("x y.onnx", "'x y.parts'")],
)
def test_parts_are_in_a_folder_beside_the_file(file: str, folder: str) -> None:
    assert partition_line(file, "npu").endswith(f"--backend npu --as-models {folder}")


def test_the_record_is_plain_data() -> None:
    suggestion = Suggestion(
        "weights in 8 bits", "smaller", "tiered ...", ModelStatistics(4, {}, 0, 100),
        ModelStatistics(3, {}, 0, 60), "1e-3",
    )  # fmt: skip
    found = diagnosis(
        coverage(*SOME), coverage(*ALL), remedies=(Remedy("opset 17", "too new", {}),),
        failed=("a: b",), suggestions=(suggestion,),
    ).record()  # fmt: skip
    assert {key: found[key] for key in found if "target" not in key and key not in (
        "before", "after", "steps")} == {
        "model": "in.onnx", "backend": "npu", "legal": False, "legal_after": True,
        "has_a_way": True, "complaint": "", "complaint_after": "",
        "remedies": [{"what": "opset 17", "why": "too new"}],
        "commands": ["tiered optimize in.onnx out.onnx --backend npu"],
        "command": "tiered prepare in.onnx out.onnx --for npu --opset 17", "failed": ["a: b"],
        "suggestions": [{
            "what": "weights in 8 bits", "why": "smaller", "command": "tiered ...",
            "nodes": [4, 3], "bytes": [100, 60], "error": "1e-3",
        }],
    }  # fmt: skip
    assert (found["target_before"]["taken"], found["target_after"]["taken"]) == (1, 2)
    assert found["after"]["nodes"] == 2
    assert [each["name"] for each in found["steps"]] == ["target"]
    bare = diagnosis(None, None, backend="").record()
    assert (bare["backend"], bare["target_before"], bare["target_after"]) == (None, None, None)
