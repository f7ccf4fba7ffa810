"""The steps of a preparation: which follow from what is asked for, in which order, as commands."""

from typing import Any

import pytest

from tiered import Backend, UsageError
from tiered.extensions.preparation.precisions import PRECISIONS, PrecisionOptions
from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.extensions.preparation.preparation_steps import (
    SAMPLES,
    PreparationStep,
    _precision_words,
    steps_of,
)
from tiered.graph import DataType
from tiered.pipeline.sequential import Sequential
from tiered.targets.pipeline_edits import PipelineEdit

ANY = Backend(name="any", unlisted="standard")
INTS = Backend(name="ints", unlisted="standard", activations=frozenset({DataType.INT8}))


def steps(
    *, to: tuple[str, ...] = (), precision: Any = None, **more: Any
) -> tuple[PreparationStep, ...]:
    given = PrecisionOptions(**(precision or {}))
    return steps_of(PrepareOptions(to=to, precision=given, **more))


def names(found: tuple[PreparationStep, ...]) -> list[str]:
    return [each.name for each in found]


ORDER: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["optimise"]),
    ({"dims": {"N": 1}}, ["shapes", "optimise"]),
    ({"input_shapes": {"x": [1]}}, ["shapes", "optimise"]),
    ({"opset": 17}, ["opset", "optimise"]),
    ({"ir": 8}, ["opset", "optimise"]),
    ({"backend": ANY}, ["target"]),
    ({"to": ("fp16",)}, ["optimise", "fp16"]),
    ({"to": ("fp16",), "backend": ANY}, ["optimise", "legalise", "fp16", "target"]),
    ({"to": ("int8",), "backend": INTS}, ["optimise", "int8", "target"]),
    ({"strip": ("docs",)}, ["optimise", "strip"]),
    (
        {"dims": {"N": 1}, "opset": 17, "to": ("fp16", "int32", "int8-weights"), "backend": ANY,
         "strip": ("all",)},
        ["shapes", "opset", "optimise", "legalise", "int32", "int8-weights", "fp16", "target",
         "strip"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), ORDER)
def test_the_steps_are_in_one_order(given: dict[str, Any], expected: list[str]) -> None:
    assert names(steps(**given)) == expected


def test_options_are_checked_first() -> None:
    with pytest.raises(UsageError, match="-O takes 0 to 4"):
        steps(opt_level=7)


def only(name: str, **given: Any) -> PreparationStep:
    return next(each for each in steps(**given) if each.name == name)


@pytest.mark.parametrize(("level", "used"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2)])
def test_shapes_are_followed_by_exact_passes_only(level: int, used: int) -> None:
    step = only("shapes", dims={"N": 2, "S": "t"}, input_shapes={"x": [1, "h"]}, opt_level=level)
    assert (step.command, step.opt_level, step.passes) == ("optimize", used, None)
    assert step.words == (
        f"-O{used}", "--dim", "N=2", "--dim", "S=t", "--input-shape", "x:1,h"
    )  # fmt: skip
    assert step.what == "N=2, S=t, x:1,h"
    assert step.dims == {"N": 2, "S": "t"}
    assert step.text.split(",default,")[0] != step.text


@pytest.mark.parametrize(
    ("given", "what", "words", "text"),
    [
        ({"opset": 17}, "opset 17", ("--opset", "17"), "convert_opset{to=17}"),
        ({"ir": 8}, "ir 8", ("--ir", "8"), "convert_opset{ir=8}"),
        ({"opset": 17, "ir": 8}, "opset 17, ir 8", ("--opset", "17", "--ir", "8"),
         "convert_opset{to=17,ir=8}"),
        ({"opset": 17, "expand": True}, "opset 17", ("--opset", "17", "--expand"),
         "convert_opset{to=17,numerics=reassociating}"),
    ],
)  # fmt: skip
def test_versions(given: dict[str, Any], what: str, words: tuple[str, ...], text: str) -> None:
    step = only("opset", **given)
    assert (step.command, step.what, step.words) == ("convert", what, words)
    assert step.text.replace(", ", ",") == text


def test_the_optimisation_is_for_any_runtime() -> None:
    step = only("optimise", to=("fp16",), backend=ANY, opt_level=2)
    assert (step.command, step.words, step.opt_level, step.backend) == (
        "optimize", ("-O2",), 2, None
    )  # fmt: skip
    assert step.settings() == {
        "passes": None, "opt_level": 2, "backend": None, "dims": {}, "input_shapes": {},
        "edits": (),
    }  # fmt: skip
    assert step.text == "default"


def test_short_loops_are_unrolled_as_the_target_says() -> None:
    target = Backend(
        name="npu", unlisted="standard",
        edits=(PipelineEdit.parse("set partial_evaluate{max_nodes=4}"),
               PipelineEdit.parse("set fold_constant{max_growth=1}"),
               PipelineEdit.parse("drop partial_evaluate")),
    )  # fmt: skip
    step = only("optimise", to=("fp16",), backend=target)
    assert step.edits == ("set partial_evaluate{max_nodes=4}",)
    assert step.words == ("-O3", "--edit", "set partial_evaluate{max_nodes=4}")


@pytest.mark.parametrize(
    ("level", "classes"),
    [(1, ["exact"]), (2, ["exact"]), (3, ["reassociating", "exact"]),
     (4, ["approximate", "reassociating", "exact"])],
)  # fmt: skip
def test_legalizations_are_those_of_the_level_the_loosest_first(
    level: int, classes: list[str]
) -> None:
    step = only("legalise", to=("fp16",), backend=ANY, opt_level=level)
    texts = ("legalize" if name == "exact" else f"legalize{{numerics={name}}}" for name in classes)
    assert step.text == ",".join(texts)
    assert step.words == (f"-O{level}", "--backend", "any", "--passes", step.text)
    assert (step.backend, step.opt_level) == (ANY, level)


WORDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "int32": ({"bounds": ["a=0:1"]}, "convert", "--to int32 --bounds a=0:1"),
    "int8": ({"processor": "vnni"}, "quantize", "--for vnni"),
    "int8 on samples": ({"inputs": ["s.npz"]}, "quantize", "--inputs s.npz"),
    "int8-dynamic": ({"processor": "avx2"}, "quantize", "--dynamic --for avx2"),
    "fp8": ({"inputs": ["s.npz"]}, "convert", "--to fp8 --no-measure --inputs s.npz"),
    "int8-weights": ({"inputs": ["s.npz"]}, "convert", "--to int8-weights --no-measure"),
    "int4-weights": ({}, "convert", "--to int4-weights --no-measure"),
    "fp16": ({"keep_io": False}, "convert", "--to fp16 --no-keep-io"),
    "bf16": ({"keep_ops": ["Erf"], "keep_nodes": ["a*"]}, "convert",
             "--to bf16 --no-measure --keep-ops Erf --keep-nodes a*"),
    "mixed": ({"inputs": ["s.npz"]}, "convert", "--to mixed --inputs s.npz"),
    "bf16 in a budget": ({"budget": "sqnr>=30", "order": "error"}, "convert",
                         "--to bf16 --budget sqnr>=30 --order error"),
    "int32 of a budget": ({"keep_io": True}, "convert", "--to int32"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORDS)
def test_the_command_of_a_conversion(case: str) -> None:
    given, command, words = WORDS[case]
    name = case.split(maxsplit=1)[0]
    step = only(name, to=(name,), precision=given)
    assert (step.command, " ".join(step.words)) == (command, words)
    assert (step.precision, step.backend, step.what) == (name, None, "")
    assert isinstance(step.passes, Sequential)


@pytest.mark.parametrize("name", PRECISIONS)
def test_the_table_of_a_target_decides_about_some_conversions(name: str) -> None:
    step = only(name, to=(name,), backend=ANY)
    if name in ("int8", "fp16", "bf16", "mixed", "int32"):
        assert (step.backend, step.what) == (ANY, "for any")
        assert step.words[-2:] == ("--backend", "any")
    else:
        assert (step.backend, step.what) == (None, "")
        assert "--backend" not in step.words


def test_at_level_0_nothing_is_legalized() -> None:
    assert names(steps(to=("fp16",), backend=ANY, opt_level=0)) == ["optimise", "fp16", "target"]


def test_the_target_has_the_level_that_was_asked_for() -> None:
    step = only("target", backend=ANY, opt_level=4)
    assert (step.command, step.words, step.what) == (
        "optimize", ("-O4", "--backend", "any"), "for any"
    )  # fmt: skip
    assert (step.backend, step.opt_level) == (ANY, 4)


def test_texts_are_removed_once() -> None:
    step = only("strip", strip=("docs,names", "docs"))
    assert (step.command, step.what, step.words) == (
        "convert", "docs, names", ("--strip", "docs,names")
    )  # fmt: skip
    assert step.text == "strip{what=[docs,names]}"


def test_the_line_of_a_step() -> None:
    step = PreparationStep(name="a", what="", command="convert", words=("--to", "fp16"))
    assert step.line("in 1.onnx", "out.onnx", "--x") == (
        "tiered convert 'in 1.onnx' out.onnx --to fp16 --x"
    )


@pytest.mark.parametrize(
    ("word", "shown"),
    [("/tmp/SAMPLES_7", SAMPLES), ("SAMPLES_7", "SAMPLES_7"), ("/tmp/samples", "/tmp/samples"),
     ("a/SAMPLES", SAMPLES)],
)  # fmt: skip
def test_a_folder_of_given_arrays_has_a_name_for_readers(word: str, shown: str) -> None:
    step = PreparationStep(name="a", what="", command="quantize", words=("--inputs", word))
    assert step.line("a", "b").endswith(f"--inputs {shown}")


def test_a_step_of_shapes_as_a_pipeline() -> None:
    for given, said in (
        ({"dims": {"N": 2}}, "dim={N: 2}"), ({"input_shapes": {"x": [1, "h"]}}, "shape={x: [1,h]}"),
    ):  # fmt: skip
        text = only("shapes", **given).text
        assert text == f"const_input_shape{{{said}}},default,const_output_shape"


def test_the_options_of_a_conversion_are_those_that_it_takes() -> None:
    everything: dict[str, Any] = {
        "budget": "sqnr>=30", "order": "error", "inputs": ["s"], "keep_ops": ["Erf"],
        "keep_nodes": ["a"], "keep_io": False, "bounds": ["x=0:1"], "processor": "vnni",
    }  # fmt: skip
    kept = "--keep-ops Erf --keep-nodes a"
    in_budget = "--budget sqnr>=30"
    for name, whole, without in (
        ("int32", f"{kept} --bounds x=0:1", f"{kept} --bounds x=0:1"),
        (
            "int8",
            f"{in_budget} --order error --inputs s {kept} --for vnni",
            f"--inputs s {kept} --for vnni",
        ),
        ("int8-dynamic", f"{in_budget} --inputs s {kept} --for vnni", f"{kept} --for vnni"),
        ("fp8", f"{in_budget} --inputs s {kept}", f"--inputs s {kept}"),
        ("int8-weights", f"{in_budget} --inputs s {kept}", kept),
        (
            "fp16",
            f"{in_budget} --order error --inputs s {kept} --no-keep-io",
            f"{kept} --no-keep-io",
        ),
        (
            "bf16",
            f"{in_budget} --order error --inputs s {kept} --no-keep-io",
            f"{kept} --no-keep-io",
        ),
        (
            "mixed",
            f"{in_budget} --order error --inputs s {kept} --no-keep-io",
            f"--inputs s {kept} --no-keep-io",
        ),
    ):
        assert " ".join(_precision_words(name, PrecisionOptions(**everything))) == whole
        options = PrecisionOptions(**{**everything, "budget": ""})
        assert " ".join(_precision_words(name, options)) == without
        assert [*_precision_words(name, PrecisionOptions())] == []
