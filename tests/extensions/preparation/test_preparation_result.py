"""The result of a preparation: its commands, promise and warnings, and what a target refuses."""

from dataclasses import replace
from typing import Any

import pytest

from tests.extensions.preparation.test_done_step import CLEAN, HALF, NONE, done
from tests.small import parsed
from tiered import Backend, TargetError
from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.extensions.preparation.preparation_result import Prepared, changes_of
from tiered.extensions.preparation.preparation_steps import PreparationStep
from tiered.extensions.preparation.promise_mark import Carried
from tiered.passes.interface.report import Remark
from tiered.support.numerics import EXACT, QUANTIZED
from tiered.targets.operator_rule import Bounds, OperatorRule

TEXT = "(float[N,2] x) => (float[N,2] y) { a = Relu(x)  b = Erf(a)  c = Erf(b)  y = Sin(c) }"


def step(name: str, **more: Any) -> PreparationStep:
    return PreparationStep(name=name, what="", command="optimize", words=(f"--{name}",), **more)


def prepared(*steps: Any, **more: Any) -> Prepared:
    model = more.pop("model", None) or parsed(TEXT)
    options = more.pop("options", None) or PrepareOptions()
    return Prepared(
        model=model, options=options, done=steps, before=NONE, after=NONE, seconds=2.0, **more
    )


def test_steps_that_changed_something_are_named_with_their_passes() -> None:
    made = prepared(
        done(step("one", opt_level=2)), done(step("two"), changed=False),
        done(step("three", opt_level=3, backend="npu")), done(HALF),
    )  # fmt: skip
    assert made.pipeline == [
        "one (-O2): default", "three (-O3, for npu): default", "bf16: float_to_bfloat16"
    ]  # fmt: skip
    assert [each.step.name for each in made.changing] == ["one", "three", "bf16"]


def test_without_a_change_the_last_step_stands_for_all() -> None:
    made = prepared(done(step("one"), changed=False), done(step("two"), changed=False))
    assert [each.step.name for each in made.changing] == ["two"]
    assert prepared().changing == []
    assert prepared().commands() == []


def test_each_command_reads_what_the_one_before_wrote() -> None:
    made = prepared(done(step("one")), done(step("two")), done(step("three")))
    assert made.commands("in.onnx", "dir/out.onnx", "--save-as-external") == [
        "tiered optimize in.onnx dir/out.step1.onnx --one",
        "tiered optimize dir/out.step1.onnx dir/out.step2.onnx --two --result-of in.onnx",
        "tiered optimize dir/out.step2.onnx dir/out.onnx --three --result-of in.onnx "
        "--save-as-external",
    ]
    alone = prepared(done(step("one"))).commands("a", "b", "--x")
    assert alone == ["tiered optimize a b --one --x"]


@pytest.mark.parametrize(
    ("source", "out", "line"),
    [("", "", "model.onnx prepared.onnx"), ("in.onnx", "o.onnx", "in.onnx o.onnx")],
)
def test_files_have_names_of_their_own_without_others(source: str, out: str, line: str) -> None:
    made = prepared(done(step("one")), source=source, out=out)
    assert made.commands() == [f"tiered optimize {line} --one"]
    assert made.commands("x", "y") == ["tiered optimize x y --one"]


def test_a_result_is_verified_if_all_changes_are_proved() -> None:
    proved, other = done(is_proved=True), done(is_proved=False)
    assert prepared(proved, proved).is_verified
    assert not prepared(proved, other).is_verified
    assert prepared(proved, replace(other, changed=False)).is_verified
    assert prepared().is_verified


def test_the_promise_is_that_of_all_steps() -> None:
    made = prepared(done(carried=Carried(QUANTIZED, "given")), done(carried=Carried(EXACT)))
    assert made.carried == Carried(QUANTIZED, "given")
    assert made.promise == QUANTIZED
    assert prepared().promise == EXACT


KINDS = {
    "failed": True, "deprecated": True, "unmet": True, "hook": True, "check": True,
    "verify": True, "applied": False, "missed": False, "analysis": False, "skipped": False,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_loud_remarks_are_warnings(kind: Any) -> None:
    made = prepared(done(remarks=(Remark(kind, "p", "it rains"),)))
    assert bool(made.warnings) == KINDS[kind]


def test_notes_come_before_remarks() -> None:
    remark = Remark("failed", "p", "it rains")
    made = prepared(done(notes=("a note",), remarks=(remark,)), done(notes=("more",)))
    assert made.warnings == ["a note", str(remark), "more"]


def test_what_stays_float_is_that_of_all_steps() -> None:
    remark = Remark("missed", "float_to_bfloat16", "kept")
    assert prepared(done(HALF, remarks=(remark,)), done(CLEAN)).stays_float == [remark]


def target(*operators: str, **more: Any) -> Backend:
    rules = {("", each): (OperatorRule(),) for each in operators}
    return Backend(name="npu", operators=rules, **more)


def refused(backend: Backend, text: str = TEXT) -> str:
    model = parsed(text)
    with pytest.raises(TargetError) as found:
        prepared(model=model, coverage=backend.coverage(model)).check_target()
    return str(found.value)


def test_a_target_that_takes_all_is_content() -> None:
    model = parsed(TEXT)
    prepared(model=model, coverage=target("Relu", "Erf", "Sin").coverage(model)).check_target()
    prepared().check_target()


def test_the_most_frequent_operators_that_are_refused_are_named() -> None:
    assert refused(target("Relu", "Sin")) == (
        "npu does not take the result: Erf (2); --host (host=True) leaves these nodes to the host"
    )
    text = TEXT.replace("y = Sin(c)", "d = Sin(c)  e = Cos(d)  f = Abs(e)  y = Neg(f)")
    said = refused(target(), text)
    assert said.startswith("npu does not take the result: Erf (2), ")
    assert said.count("(1)") == 2
    assert ", 3 more operators; --host" in said
    assert "more operators" not in refused(target(), TEXT)


def test_a_refused_model_and_dims_that_can_be_fixed_are_said() -> None:
    every = ("Relu", "Erf", "Sin")
    assert "opset" in refused(target(*every, opset=Bounds(13, 17)))
    assert "; dims can be fixed: --dim N=" in refused(target(*every, shapes="static"))
    assert "dims can be fixed" not in refused(target())


def test_the_record_is_plain_data() -> None:
    model = parsed(TEXT)
    options = PrepareOptions(opt_level=2, backend="npu")
    made = prepared(
        done(step("one"), is_proved=True), model=model, options=options, error="small",
        interface=["x: float"], coverage=target("Relu").coverage(model), source="in.onnx",
    ).record()  # fmt: skip
    assert made["target"]["taken"] == 1
    apart = ("target", "steps", "before", "after")
    assert {key: made[key] for key in made if key not in apart} == {
        "input": "in.onnx", "output": None, "opt_level": 2, "backend": "npu",
        "interface": ["x: float"], "pipeline": ["one: default"],
        "commands": ["tiered optimize in.onnx prepared.onnx --one"], "verified": True,
        "promise": "exact", "error_of_whole": "small", "stays_float": [], "seconds": 2.0,
    }  # fmt: skip
    bare = prepared(out="o.onnx").record()
    assert (bare["output"], bare["backend"], bare["target"]) == ("o.onnx", None, None)


def test_changes_of_the_interface_are_those_since_the_origin() -> None:
    model = parsed(TEXT)
    origin = model.to_proto()
    assert changes_of(model, origin) == []
    model.main.rename_value(model.main.values["x"], "z")
    assert any("z" in change for change in changes_of(model, origin))
    assert prepared(model=model).to_proto() == model.to_proto()
