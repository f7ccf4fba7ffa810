"""The summary of `tiered prepare`, for people."""

from typing import Any

import pytest
from rich.console import Console

from tests.small import parsed
from tiered.cli.output.preparation import FEW, print_prepared
from tiered.extensions.preparation.done_step import DoneStep
from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.extensions.preparation.preparation_result import Prepared
from tiered.extensions.preparation.preparation_steps import PreparationStep
from tiered.extensions.preparation.promise_mark import Carried
from tiered.passes.interface.report import Remark
from tiered.pipeline import Sequential
from tiered.pipeline.result import ModelStatistics
from tiered.support.numerics import Numerics, Promise
from tiered.targets import get_backend

BEFORE, AFTER = (
    ModelStatistics(12, {"Add": 12}, 100, 2048),
    ModelStatistics(9, {"Add": 9}, 100, 1024),
)
REASSOCIATING = Carried(Promise(Numerics.REASSOCIATING))


def step(name: str = "optimise", **more: Any) -> PreparationStep:
    return PreparationStep(
        **{"name": name, "what": f"the {name}", "command": "optimize", "words": ("-O3",), **more}
    )


def done(of: PreparationStep | None = None, **more: Any) -> DoneStep:
    settings: dict[str, Any] = {
        "step": step() if of is None else of, "changed": True, "before": BEFORE, "after": AFTER,
        "seconds": 1.5, "verdict": "yes", "is_proved": True, "carried": Carried(), "largest": 0.0,
        "taken": None, "refused": None,
    }  # fmt: skip
    return DoneStep(**{**settings, **more})


def prepared(*steps: DoneStep, **more: Any) -> Prepared:
    settings: dict[str, Any] = {
        "model": parsed("(float[2] x) => (float[2] y) { a = Mish(x)  y = Neg(a) }"),
        "options": PrepareOptions(), "done": steps or (done(),), "before": BEFORE, "after": AFTER,
        "seconds": 2.5, "source": "in.onnx", "out": "out.onnx",
    }  # fmt: skip
    return Prepared(**{**settings, **more})


def lines(made: Prepared, *, verbose: bool = False, target: str = "out.onnx") -> list[str]:
    """Return the lines that are not empty."""
    console = Console(width=220, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        print_prepared(console, made, target, verbose=verbose)
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


def cells(made: Prepared, first: str) -> list[str]:
    """Return the words of the row that begins with a word."""
    (row,) = [line.split() for line in lines(made) if line.split()[0] == first]
    return row


# --- the head -------------------------------------------------------------------------------------


def test_the_head_says_from_where_to_where_and_how() -> None:
    assert lines(prepared())[0] == "in.onnx -> out.onnx  (-O3, 2.50 s)"
    assert lines(prepared(out=""))[0] == "in.onnx -> nothing written  (-O3, 2.50 s)"
    made = prepared(
        done(), done(step("half", precision="fp16")), done(step("eight", precision="int8")),
        options=PrepareOptions(backend="tensorrt", opt_level=2),
    )  # fmt: skip
    assert lines(made)[0] == "in.onnx -> out.onnx  (for tensorrt, fp16, int8, -O2, 2.50 s)"


# --- steps ----------------------------------------------------------------------------------------


def test_each_step_has_its_figures_and_its_verdict() -> None:
    made = prepared(done(carried=REASSOCIATING, largest=1.5e-6, seconds=0.25))
    assert cells(made, "optimise") == [
        "optimise", "the", "optimise", "9", "1.0", "KiB", "yes", "(reassociating)", "1.5e-06",
        "250.00", "ms",
    ]  # fmt: skip
    assert cells(made, "step") == [
        "step",
        "nodes",
        "bytes",
        "verified",
        "largest",
        "difference",
        "time",
    ]


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        ("yes", "yes (exact)"),
        ("in part (y is random)", "in part (exact)"),
        ("nothing to verify (no pass changed anything)", "nothing to verify"),
        ("structure only", "structure only"),
        ("", "no"),
        ("no (nothing ran)", "no"),
    ],
)
def test_a_verdict_is_shown_without_its_reason(verdict: str, shown: str) -> None:
    (row,) = [
        line for line in lines(prepared(done(verdict=verdict))) if line.startswith(" optimise")
    ]
    assert f"  {shown}  " in row


def test_a_step_without_a_change_says_so() -> None:
    rows = cells(prepared(done(step(what="fusions"), changed=False)), "optimise")
    assert rows[1:4] == ["fusions", "(no", "change)"]
    assert cells(prepared(done(step(what=""), changed=False)), "optimise")[1:3] == [
        "(no",
        "change)",
    ]


def test_the_totals_are_before_and_the_change() -> None:
    made = prepared()
    assert cells(made, "before") == ["before", "12", "2.0", "KiB"]
    assert cells(made, "after") == ["after", "-3", "(-25%)", "-1,024", "(-50%)"]
    assert cells(prepared(after=BEFORE), "after") == ["after", "same", "same"]


def test_a_target_has_a_column_of_its_own() -> None:
    backend = get_backend("onnxruntime_cpu")
    made = prepared(done(taken=7, refused=2), coverage=backend.coverage(prepared().model))
    assert "taken" in cells(made, "step")
    assert "7" in cells(made, "optimise")
    assert "taken" not in cells(prepared(), "step")


# --- what stays -----------------------------------------------------------------------------------


def _left(count: int) -> DoneStep:
    passes = Sequential(["float_to_half"])
    remarks = [
        Remark("missed", "float_to_half", f"reason {at}", 3, "Add", ("a", "b", "c"))
        for at in range(count)
    ]
    found = Remark("analysis", "float_to_half", "half of the weights")
    return done(step("half", precision="fp16", passes=passes), remarks=[*remarks, found])


def test_what_stays_float_is_a_table_with_examples() -> None:
    shown = lines(prepared(_left(1)))
    at = shown.index("Stays as it is")
    assert shown[at + 1].split() == ["operator", "nodes", "reason", "for", "example"]
    assert shown[at + 3].split() == ["Add", "3", "reason", "0", "a,", "b"]
    found = shown.index("half:")
    assert shown[found + 1] == "  half of the weights"
    whole = done(
        step("half", precision="fp16", passes=Sequential(["float_to_half"])),
        remarks=[Remark("missed", "float_to_half", "nothing is float")],
    )
    assert cells(prepared(whole), "the")[:2] == ["the", "model"]
    assert "Stays as it is" not in lines(prepared())


def test_long_tables_are_cut_without_v() -> None:
    made = prepared(_left(FEW + 2))
    short, whole = lines(made), lines(made, verbose=True)
    assert "  and 2 more rows (-v lists them)" in short
    assert not any(f"reason {FEW} " in line for line in short)
    assert any(f"reason {FEW + 1} " in line for line in whole)
    assert not any("more rows" in line for line in lines(prepared(_left(FEW))))


def test_what_stays_on_the_host_has_its_reasons() -> None:
    backend = get_backend("qnn_htp")
    model = parsed("(float[2] x) => (float[2] y) { [m] a = Mish(x)  y = Neg(a) }")
    coverage = backend.coverage(model)
    shown = lines(prepared(coverage=coverage))
    assert coverage.gaps
    assert f"Stays on the host: not for {coverage.backend}" in shown
    assert any(line.split()[:2] == ["Mish", "1"] and line.endswith(" m") for line in shown)
    assert str(coverage) in shown
    assert not any("host" in line for line in lines(prepared()))


# --- the end --------------------------------------------------------------------------------------


def test_the_interface_the_pipeline_and_the_commands_are_listed() -> None:
    shown = lines(prepared(interface=["opset 17 -> 21"]), target="made.onnx")
    at = shown.index("interface changed:")
    assert shown[at + 1] == "  opset 17 -> 21"
    at = shown.index("pipeline:")
    assert shown[at + 1] == "  optimise: default"
    at = shown.index("commands that make the same bytes:")
    assert shown[at + 1] == "  tiered optimize in.onnx made.onnx -O3"
    assert "interface changed:" not in lines(prepared())


def test_the_error_of_the_whole_is_told() -> None:
    assert "the whole: cosine 0.999" in lines(prepared(error="cosine 0.999"))
    assert not any(line.startswith("the whole") for line in lines(prepared()))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((done(changed=False),), "nothing to verify (no step changed anything)"),
        (
            (done(), done(carried=REASSOCIATING)),
            "yes (every step within its promise; the whole: reassociating)",
        ),
        (
            (done(), done(changed=False, is_proved=False)),
            "yes (every step within its promise; the whole: exact)",
        ),
        (
            (done(), done(verdict="in part (odd)", is_proved=False)),
            "not as a whole (steps: 1 yes, 1 in part)",
        ),
        (
            (done(verdict="", is_proved=False), done(verdict="", is_proved=False)),
            "not as a whole (steps: 2 no)",
        ),
    ],
)
def test_the_whole_is_verified_if_each_step_is(steps: tuple[DoneStep, ...], said: str) -> None:
    assert lines(prepared(*steps))[-1] == f"verified: {said}"


def test_invisible_characters_are_shown() -> None:
    shown = lines(prepared(source="i\x1bn.onnx", error="o\nd"))
    assert shown[0].startswith(r"i\x1bn.onnx -> ")
    assert r"the whole: o\nd" in shown
