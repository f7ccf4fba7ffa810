"""The conformance suites find what they are for: a judge that nobody fails measures nothing."""

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper
from onnx.backend.test.case.test_case import TestCase

from tests.conformance.backend import _DataSet, _Judge
from tests.conformance.judge import Optimize, Outputs, Subject, Trial, judge, open_on_onnxruntime
from tests.conformance.pool import Lost, Report, run_tasks
from tiered.runtime.compare.outputs import compare
from tiered.testing import parse

ORIGINAL = """
<ir_version: 8, opset_import: ["" : 17, "unused" : 1]>
agraph (float[N,4] x) => (float[N,4] y) { h = Relu(x)  y = Neg(h) }
"""


def _copy(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def _fault(expected: Outputs, _level: int, _result: ModelProto, outputs: Outputs) -> str | None:
    return None if compare(expected, outputs).ok else "differs"


def _kinds(optimize: Optimize) -> set[str]:
    """Judge what an optimiser makes of the original."""
    model = onnx.parser.parse_model(ORIGINAL)
    feeds = {"x": np.array([[-1.0, 0.0, 1.0, 2.0]], dtype=np.float32)}
    expected = open_on_onnxruntime(model)(feeds)
    trial = Trial("only", feeds, partial(_fault, expected))
    subject = Subject(model, open_on_onnxruntime, (trial,))
    _, failures = judge(subject, 2, optimize, lambda stage: None)
    return {failure.kind for failure in failures}


def _edited(edit: Callable[[ModelProto], object]) -> Optimize:
    def optimize(model: ModelProto, level: int) -> ModelProto:
        result = _copy(model)
        edit(result)
        return result

    return optimize


def _computes_something_else(model: ModelProto) -> None:
    model.graph.node[0].op_type = "Abs"


def _renames_a_dim(model: ModelProto) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"


def _adds_an_output(model: ModelProto) -> None:
    del model.graph.output[1:]
    model.graph.output.append(helper.make_tensor_value_info("h", 1, ["N", 4]))


def _raises_the_opset(model: ModelProto) -> None:
    model.opset_import[0].version = 18


def _raises_the_ir_version(model: ModelProto) -> None:
    model.ir_version = 9


def _imports_what_it_does_not_use(model: ModelProto) -> None:
    model.opset_import[1].domain = "com.microsoft"


def _grows(model: ModelProto) -> None:
    model.doc_string = "x" * 5000


def _reads_what_nobody_writes(model: ModelProto) -> None:
    model.graph.node[0].input[0] = "nowhere"


def _names_two_nodes_alike(model: ModelProto) -> None:
    for node in model.graph.node:
        node.name = "same"


def _writes_on_every_run(model: ModelProto) -> None:
    model.doc_string += "x"


@pytest.mark.parametrize(
    ("edit", "kinds"),
    [
        (_computes_something_else, {"wrong"}),
        (_renames_a_dim, {"interface"}),
        (_adds_an_output, {"interface", "wrong"}),
        (_raises_the_opset, {"opset"}),
        (_raises_the_ir_version, {"opset"}),
        (_imports_what_it_does_not_use, {"opset"}),
        (_grows, {"grown"}),
        (_reads_what_nobody_writes, {"invalid", "unrunnable"}),
        (_names_two_nodes_alike, {"unrunnable"}),
        (_writes_on_every_run, {"unstable"}),
    ],
)
def test_the_judge_sees_an_optimiser_that(
    edit: Callable[[ModelProto], None], kinds: set[str]
) -> None:
    assert _kinds(_edited(edit)) == kinds


def _drops_an_unused_domain(model: ModelProto) -> None:
    del model.opset_import[1]


def _uses_a_new_domain(model: ModelProto) -> None:
    _drops_an_unused_domain(model)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.graph.node[0].CopyFrom(
        helper.make_node("QuickGelu", ["x"], ["unused"], domain="com.microsoft")
    )
    model.graph.node.insert(1, helper.make_node("Relu", ["x"], ["h"]))


@pytest.mark.parametrize("edit", [_copy, _drops_an_unused_domain, _uses_a_new_domain])
def test_the_judge_accepts_an_optimiser_that(edit: Callable[[ModelProto], object]) -> None:
    def optimize(model: ModelProto, level: int) -> ModelProto:
        result = onnx.parser.parse_model(ORIGINAL)
        edit(result)
        return result

    assert _kinds(optimize) == set()


def test_the_judge_sees_that_a_good_model_is_refused() -> None:
    def optimize(model: ModelProto, level: int) -> ModelProto:
        raise KeyError("no such thing")

    assert _kinds(optimize) == {"refused"}


def test_the_judge_sees_that_the_caller_s_model_is_changed() -> None:
    def optimize(model: ModelProto, level: int) -> ModelProto:
        result = _copy(model)
        model.producer_name = "somebody else"
        return result

    assert "mutated" in _kinds(optimize)


def _work(task: str, report: Report) -> str:
    report(f"at {task}")
    match task:
        case "abort":
            os.abort()
        case "sleep":
            time.sleep(600)
        case "raise":
            raise KeyError(task)
    return task.upper()


def test_a_dead_worker_is_one_lost_task() -> None:
    tasks = ["a", "abort", "b", "raise", "c"]
    answers = dict(run_tasks(_work, tasks, jobs=1, timeout=300))
    assert list(answers) == tasks
    assert answers["abort"] == Lost("crash", "SIGABRT at: at abort")
    raised = answers["raise"]
    assert isinstance(raised, Lost)
    assert raised.kind == "harness"
    assert "KeyError: 'raise'" in raised.detail
    assert [answers[task] for task in "abc"] == ["A", "B", "C"]


def test_a_worker_that_hangs_is_one_lost_task() -> None:
    answers = dict(run_tasks(_work, ["sleep", "a"], jobs=1, timeout=4))
    assert answers == {"sleep": Lost("hang", "no sign of life for 4 s at: at sleep"), "a": "A"}


@pytest.mark.parametrize(("level", "is_fault"), [(2, True), (3, False), (4, False)])
def test_a_case_of_halves_may_differ_by_what_its_level_promises(level: int, is_fault: bool) -> None:
    case = TestCase("half", "half", None, None, None, None, "node", rtol=1e-3, atol=1e-7)
    model = parse("(float16[1] x) => (float16[1] y) { y = Neg(x) }")
    feeds, answer = {"x": np.array([-0.5], np.float16)}, {"y": np.array([0.5], np.float16)}
    judge = _Judge(case, model, _DataSet(feeds, answer), [lambda _: answer] * 2)
    later = {"y": np.array([0.499], np.float16)}  # four numbers further
    assert bool(judge.fault(level, model, later)) is is_fault
