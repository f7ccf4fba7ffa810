"""Verification by the whole model: what runs, what is compared, who judges, what is said."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.small import model
from tests.verify.in_process import InProcess, in_process
from tiered import Model
from tiered.graph import RewriteRecord
from tiered.graph.core.interface_map import InterfaceMap
from tiered.passes.interface.pass_info import PassInfo
from tiered.runtime.compare.outputs import Comparison, OutputDifference
from tiered.runtime.inputs.make import Inputs
from tiered.runtime.inputs.samples import Sample, Wanted
from tiered.support.errors import (
    Crashed,
    MissingOperator,
    NotVerifiable,
    RuntimeFailure,
    VerificationError,
)
from tiered.support.numerics import Numerics
from tiered.verify import model_check
from tiered.verify.baseline import Baseline, RecordedBaseline, RunnableModel
from tiered.verify.live_extract import part_of
from tiered.verify.methods import Case, VerifiedPasses
from tiered.verify.model_check import WholeModel, failure_of
from tiered.verify.reference_check import Opinion

BEFORE = "g (float[2] x) => (float[2] y) { a = Relu(x)  y = Neg(a) }"
RIGHT = "g (float[2] x) => (float[2] y) { a = Relu(x)  b = Relu(a)  y = Neg(b) }"
WRONG = "g (float[2] x) => (float[2] y) { a = Abs(x)  y = Neg(a) }"
INFO = PassInfo("a_pass", opt_level=1)
FEEDS = ({"x": np.array([1, -2], np.float32)},)


def case_of(
    after: str | Model, before: str = BEFORE, info: PassInfo = INFO, **wanted: Any
) -> tuple[InProcess, Case]:
    here, worker = in_process()
    made = model(after) if isinstance(after, str) else after
    first = Baseline.of(model(before))
    samples = Wanted(given=FEEDS, **wanted) if "given" not in wanted else Wanted(**wanted)
    return here, Case(made, first, VerifiedPasses((info,)), samples, worker, 1 << 30)


def failure(case: Case) -> str:
    with pytest.raises(VerificationError) as failed:
        WholeModel().check(case)
    return str(failed.value)


# --- what runs ------------------------------------------------------------------------------------


def test_it_applies_to_baselines_of_whole_models() -> None:
    _, case = case_of(RIGHT)
    assert WholeModel().applies(case)
    case.before = RecordedBaseline(case.before.stamp, part_of(case.model))
    assert not WholeModel().applies(case)


def test_a_right_pass_is_verified_on_the_samples() -> None:
    here, case = case_of(RIGHT)
    after = WholeModel().check(case)
    assert [method.by for method in case.methods] == ["model"]
    assert (case.methods[0].inputs, case.methods[0].judge) == ("given", "onnxruntime")
    assert (case.has_run, case.remarks) == (True, [])
    assert after.samples is case.samples
    assert [each.ok for each in case.comparisons] == [True]
    assert after.outputs[0]["y"].tolist() == [-1, 0]
    assert here.runs == 2
    assert all(each.is_closed for each in here.opened)


def test_inputs_are_made_without_any() -> None:
    _, case = case_of(RIGHT, given=())
    WholeModel().check(case)
    assert case.methods[0].inputs == "generated"


def test_the_next_pass_has_the_outputs_of_this_one() -> None:
    here, case = case_of(RIGHT)
    first = WholeModel().check(case)
    second = Case(model(BEFORE), first, case.subject, case.wanted, case.worker, 1 << 30)
    WholeModel().check(second)
    assert here.runs == 3


def test_the_same_bytes_need_no_run() -> None:
    here, case = case_of(BEFORE)
    stamp = case.model.journal.stamp()
    after = WholeModel().check(case)
    assert after is case.before
    assert after.stamp == stamp
    assert [method.by for method in case.methods] == ["sameness"]
    assert (here.runs, case.has_run) == (0, False)


def test_the_same_bytes_beside_other_files_are_run() -> None:
    here, case = case_of(BEFORE)
    assert isinstance(case.before, Baseline)
    case.before.runnable = RunnableModel(case.before.runnable.proto, "another folder")
    assert WholeModel().check(case) is not case.before
    assert [method.by for method in case.methods] == ["model"]
    assert (here.runs, case.has_run) == (2, True)


def test_a_model_without_outputs_has_nothing_to_verify() -> None:
    _, case = case_of("g (float[2] x) => () { a = Abs(x) }", "g (float[2] x) => () { a = Relu(x) }")
    after = WholeModel().check(case)
    assert after is not case.before
    assert [str(method) for method in case.methods] == ["a_pass: the model has no outputs"]
    assert not case.has_run


def test_where_all_outputs_are_random_nothing_was_verified() -> None:
    text = "g (float[2] x) => (float[2] y) { a = RandomUniformLike(x)  y = OP(a) }"
    _, case = case_of(text.replace("OP", "Neg"), text.replace("OP", "Abs"))
    WholeModel().check(case)
    (method,) = case.methods
    assert method.by == "nothing"
    assert method.why.startswith("y (not comparable: random")


# --- what fails -----------------------------------------------------------------------------------


def test_a_wrong_pass_is_named_with_the_difference_and_the_inputs() -> None:
    _, case = case_of(WRONG)
    assert failure(case).splitlines()[0] == (
        "a_pass changed output 'y' of the model (max abs 2.0e+00, promised: exact)"
    )
    _, case = case_of(WRONG)
    text = failure(case)
    assert "\n  inputs      inputs 1" in text
    assert "\n  sizes       no symbolic dims" in text
    assert "\n  judged      " in text


def test_what_the_reference_excuses_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    _, case = case_of(WRONG)
    monkeypatch.setattr(model_check, "reference_opinion", lambda *_: Opinion(True, "excused"))
    WholeModel().check(case)
    assert case.remarks == ["excused"]
    _, case = case_of(WRONG)
    monkeypatch.setattr(model_check, "reference_opinion", lambda *_: Opinion(False, "guilty"))
    monkeypatch.setattr(model_check, "amplification", lambda *_: "")
    assert "\n  judged      guilty" in failure(case)
    _, case = case_of(WRONG)
    monkeypatch.setattr(model_check, "amplification", lambda *_: "amplified")
    WholeModel().check(case)
    assert case.remarks == ["amplified"]


def test_a_model_before_that_does_not_run_is_no_fault_of_the_pass() -> None:
    here, case = case_of(RIGHT)
    here.refuses = {"onnxruntime": RuntimeFailure("one"), "reference": RuntimeFailure("two")}
    with pytest.raises(NotVerifiable, match="not verified: neither runtime runs the original"):
        WholeModel().check(case)
    here.refuses = {"onnxruntime": Crashed("of a limit")}
    with pytest.raises(Crashed, match="of a limit"):
        WholeModel().check(case)


def opened_then(here: InProcess, error: Exception) -> None:
    """Let the first model open, and refuse the second one."""
    plain = here.open

    def open_(*args: Any, **how: Any) -> Any:
        if here.opened:
            raise error
        return plain(*args, **how)

    here.open = open_  # type: ignore[method-assign]  # of one object


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            RuntimeFailure("no kernel"),
            "a_pass: onnxruntime opens the model before, but not the result: no kernel",
        ),
        (
            MissingOperator("has no operator X"),
            "a_pass: the result cannot be verified: it has no operator X",
        ),
    ],
)
def test_a_result_that_does_not_open_is_the_fault_of_the_pass(error: Exception, text: str) -> None:
    here, case = case_of(RIGHT)
    opened_then(here, error)
    assert failure(case) == text


def test_a_result_that_does_not_run_is_the_fault_of_the_pass() -> None:
    fails = """g (float[2] x) => (float[2] y) <int64[1] i = {5}> {
        a = Gather(x, i)  y = Add(a, x) }"""
    _, case = case_of(fails)
    text = failure(case)
    assert text.startswith("a_pass: the model before runs, but not the result: ")
    assert "\n  inputs      inputs 1" in text


def test_the_reference_judges_what_onnxruntime_does_not_load() -> None:
    here, case = case_of(RIGHT)
    here.refuses["onnxruntime"] = RuntimeFailure("no kernel")
    after = WholeModel().check(case)
    assert case.remarks == [
        "onnx.reference runs the model, as onnxruntime does not load the original: no kernel"
    ]
    assert case.methods[0].judge == "onnx.reference"
    assert (after.refused, after.was_said) == ("no kernel", True)
    second = Case(model(BEFORE), after, case.subject, case.wanted, case.worker, 1 << 30)
    WholeModel().check(second)
    assert second.remarks == []


# --- another interface ----------------------------------------------------------------------------

CHANGES = PassInfo("a_pass", opt_level=1, changes_interface=True)


def test_outputs_that_only_one_model_has_are_not_compared() -> None:
    more = "g (float[2] x) => (float[2] y, float[2] n) { a = Relu(x)  y = Neg(a)  n = Exp(x) }"
    _, case = case_of(more, info=CHANGES)
    WholeModel().check(case)
    assert case.remarks == ["output n not compared: the model before has no such tensor"]
    assert [output.name for output in case.comparisons[0].outputs] == ["y"]
    _, case = case_of(BEFORE, more, info=CHANGES)
    WholeModel().check(case)
    assert case.remarks == []


def test_an_output_is_compared_with_the_inner_value_of_its_name() -> None:
    shown = "g (float[2] x) => (float[2] y, float[2] a) { a = Relu(x)  y = Neg(a) }"
    _, case = case_of(shown, info=CHANGES)
    WholeModel().check(case)
    assert {output.name for output in case.comparisons[0].outputs} == {"y", "a"}
    assert case.remarks == []


def test_a_wrong_pass_with_another_interface_is_found() -> None:
    more = """g (float[2] x) => (float[2] y, float[2] n, float[2] k) {
        a = Abs(x)  n = Exp(x)  k = Sin(x)  y = Neg(a) }"""
    _, case = case_of(more, info=CHANGES)
    assert "changed output 'y'" in failure(case)
    assert case.remarks == ["outputs k, n not compared: the model before has no such tensor"]


# --- the error ------------------------------------------------------------------------------------


GRAPH = model(BEFORE).main


def records(*numbers: int, names: Sequence[str] = ("n",)) -> tuple[RewriteRecord, ...]:
    cycle = [names[at % len(names)] for at in range(len(numbers))]
    return tuple(
        RewriteRecord(number, "a_pass", "a law", GRAPH, name, ())
        for number, name in zip(numbers, cycle, strict=True)
    )


def subject(*names: str, rewrites: tuple[RewriteRecord, ...] = ()) -> VerifiedPasses:
    return VerifiedPasses(tuple(PassInfo(name, opt_level=1) for name in names), rewrites)


def differing(*failing: tuple[str, float]) -> Comparison:
    outputs = [OutputDifference(name, False, by, reason="differs") for name, by in failing]
    return Comparison(outputs, Numerics.EXACT)


def test_a_failure_without_a_comparison_is_its_text() -> None:
    assert str(failure_of(subject("a_pass"), "the model", "it fails")) == "a_pass: it fails"


def test_a_failure_names_the_worst_output() -> None:
    sample = Sample("inputs 1", Inputs({}, {}))
    found = failure_of(
        subject("a_pass"), "the model", "", sample, differing(("y", 1.0), ("z", 3.0)), "one\ntwo"
    )
    lines = str(found).splitlines()
    assert lines[0] == "a_pass changed output 'z' of the model (max abs 3.0e+00, promised: exact)"
    assert lines[1].startswith("  outputs     y")
    assert lines[2].startswith("              z")


@pytest.mark.parametrize(
    ("rewrites", "row"),
    [
        (records(4), "#4 of the run, at 'n'"),
        (records(4, 5, 9), "#4 to #9 of the run, at 'n'"),
        (records(1, 2, 3, names="abc"), "#1 to #3 of the run, at 'a', 'b', 'c'"),
        (records(1, 2, 3, 4, names="abcd"), "#1 to #4 of the run, at 'a', 'b', 'c', ..."),
        (records(1, names=("",)), "#1 of the run"),
    ],
)
def test_the_rewrites_of_a_pass_are_named(rewrites: tuple[RewriteRecord, ...], row: str) -> None:
    found = failure_of(subject("a_pass", rewrites=rewrites), "the model", "it fails")
    assert str(found) == f"a_pass: it fails\n  rewrites    {row}"
    assert found.rewrites == (rewrites[0].number, rewrites[-1].number)


def test_several_passes_are_named_together() -> None:
    found = failure_of(subject("a", "b"), "the model", "", None, differing(("y", 1.0)))
    lines = str(found).splitlines()
    assert lines[0] == "the passes changed what the model computes (promised: exact)"
    assert lines[-1] == "  changed by  a, b"
    six = failure_of(subject(*"abcdef"), "the model", "it fails")
    assert str(six) == "it fails\n  changed by  a, b, c, d, e, f"
    eight = failure_of(subject(*"abcdefgh"), "the model", "it fails")
    assert str(eight).endswith(
        "a, b, c, d, e, f and 2 more passes; `tiered bisect` names the one that is wrong"
    )


def test_the_reference_is_asked_where_one_of_the_models_has_narrow_floats() -> None:
    plain = "g (float[2] x) => (float[2] y) { y = Mul(x, x) }"
    narrow = """g (float[2] x) => (float[2] y) {
        h = Cast<to = TO>(x)  d = Mul(h, h)  y = Cast<to = 1>(d) }"""
    for before, after, judge in (
        (plain, plain.replace("y = Mul(x, x)", "a = Abs(x)  y = Mul(a, a)"), "onnxruntime"),
        (narrow.replace("TO", "10"), plain, "onnx.reference"),
        (plain, narrow.replace("TO", "10"), "onnx.reference"),
        (narrow.replace("TO", "16"), plain, "onnx.reference"),  # which onnxruntime does not open
    ):
        _, case = case_of(after, before)
        WholeModel().check(case)
        assert [way.judge for way in case.methods] == [judge], (before, after)


def test_samples_that_do_not_go_on_are_not_compared_nor_judged() -> None:
    narrow = """g (float[2] x) => (float[2] y) {
        h = Cast<to = 10>(x)  d = Mul(h, h)  y = Cast<to = 1>(d) }"""
    after = model(narrow)
    _, case = case_of(after, narrow.replace("Mul(h, h)", "Add(h, h)"), INFO._replace(
        changes_interface=True))  # fmt: skip
    after.main.rename_value(after.main.inputs[0], "z")
    after.note_interface(InterfaceMap({"z": ("x", None)}, new="it is another model"))
    WholeModel().check(case)
    why = (
        "the model before does not run on what the one after takes, so they were not compared: "
        "it is another model"
    )
    fits = (
        "the given inputs do not fit the model any more, so others were made: "
        "inputs 1: the model has no input 'x'; it has z"
    )
    assert case.remarks == [why, fits]
    assert [(way.by, way.why) for way in case.methods] == [("nothing", why)]


def test_the_reference_may_excuse_what_takes_the_same_samples() -> None:
    text = "g (float[2] x, bool[2] c) => (float[2] y) { a = Neg(x)  y = Where(c, a, a) }"
    feeds = {"x": np.zeros(2, np.float32), "c": np.ones(2, bool)}
    relations = (InterfaceMap({"y": ("y", None)}), InterfaceMap(feeds={"x": ("x", None)}))
    for changes, relation, is_excused in (
        (False, None, True), (True, None, True), *((True, each, False) for each in relations),
    ):  # fmt: skip
        after = model(text.replace("a = Neg(x)  y = Where(c, a, a)", "y = Neg(x)"))
        info = INFO._replace(changes_interface=changes)
        _, case = case_of(after, text, info, given=(feeds,))
        if relation is not None:
            after.main.rename_node(after.main.nodes[0], "edited")
            after.note_interface(relation)
        if is_excused:
            WholeModel().check(case)
            assert [remark[:50] for remark in case.remarks] == [
                "equal on onnx.reference, not on onnxruntime, as is"
            ], changes
        else:
            assert failure(case).startswith("a_pass changed output 'y'"), relation


def test_the_reference_rules_on_all_given_samples_and_on_the_first_made_ones() -> None:
    narrow = """g (float[2] x) => (float[2] y) {
        h = Cast<to = 10>(x)  d = Mul(h, h)  y = Cast<to = 1>(d) }"""
    after = narrow.replace("d = Mul(h, h)", "e = Abs(h)  d = Mul(e, e)")
    for given, count in (((), 2), (FEEDS * 2, 4)):
        here, case = case_of(after, narrow, given=given)
        WholeModel().check(case)
        assert len(case.comparisons) == 2
        assert [each["runtime"] for each in here.how].count("reference") == count


def test_a_failure_has_the_sizes_of_made_inputs() -> None:
    before, after = (text.replace("[2]", "[N]") for text in (BEFORE, WRONG))
    _, case = case_of(after, before, given=())
    assert "\n  sizes       N=3\n" in f"{failure(case)}\n"
