"""Which changes of options may make a target take more of a model."""

from collections.abc import Iterable

import pytest

from tests.small import parsed
from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.extensions.preparation.remedies import (
    Remedy,
    fixing,
    for_any_runtime,
    for_target,
    gaining,
)
from tiered.graph import DataType, Model
from tiered.targets import Backend
from tiered.targets.operator_rule import Bounds
from tiered.targets.pipeline_edits import PipelineEdit
from tiered.targets.quantized import Quantization

TEXT = "(float[N,2] x) => (float[N,2] y) { y = Relu(x) }"
FIXED = TEXT.replace("N", "1")
WEIGHT = "(float16[2] x) => (float16[2] y) <float16[2] w = {1,2}> { y = Add(x, w) }"
BEYOND = ["approximations too"]


def whats(remedies: Iterable[Remedy], *, needed: bool = False) -> list[str]:
    return [each.what for each in remedies if each.is_needed or not needed]


def found(model: Model, target: Backend) -> list[Remedy]:
    return list(for_target(model, target, target.coverage(model)))


def test_a_remedy_sets_options_and_adds_conversions() -> None:
    options = PrepareOptions(to=("int32",), opset=17)
    changed = Remedy("", "", {"to": ("fp16",), "opset": 21}).applied(options)
    assert (changed.to, changed.opset) == (("int32", "fp16"), 21)
    assert Remedy("", "", {"strip": ("all",)}).applied(options).to == ("int32",)


def test_a_target_of_everything_is_offered_newer_operators_at_most() -> None:
    anything = Backend(name="any", unlisted="standard")
    assert whats(found(parsed(FIXED), anything)) == BEYOND
    assert whats(found(parsed(FIXED, opset=13), anything)) == ["opset 17", "opset 21", *BEYOND]
    assert whats(found(parsed(FIXED, opset=17), anything)) == ["opset 21", *BEYOND]
    narrow = Backend(name="narrow", unlisted="standard", opset=Bounds(13, 17))
    assert whats(found(parsed(FIXED, opset=13), narrow)) == ["opset 17", *BEYOND]


@pytest.mark.parametrize(("opset", "nearest"), [(21, 17), (11, 13)])
def test_the_nearest_opset_within_the_bounds_is_needed(opset: int, nearest: int) -> None:
    target = Backend(name="narrow", unlisted="standard", opset=Bounds(13, 17))
    remedies = found(parsed(FIXED, opset=opset), target)
    assert whats(remedies, needed=True) == [f"opset {nearest}", f"opset {nearest}, with bodies"]
    assert remedies[0].changes == {"opset": nearest}
    assert remedies[1].changes == {"opset": nearest, "expand": True}
    assert remedies[0].why == f"opset {opset} is not in 13 to 17"


def test_the_ir_version_follows_the_target_or_brings_functions() -> None:
    model = parsed(FIXED)
    old = Backend(name="old", unlisted="standard", ir_version=Bounds(None, 7))
    (first, *_) = found(model, old)
    assert (first.what, first.changes, first.is_needed) == ("IR version 7", {"ir": 7}, True)
    model.set_ir_version(7)
    assert whats(found(model, Backend(name="any", unlisted="standard"))) == [
        "IR version 8",
        *BEYOND,
    ]
    assert whats(found(model, old)) == BEYOND


def test_static_shapes_need_sizes_for_named_dims() -> None:
    static = Backend(name="static", unlisted="standard", shapes="static")
    (first, *_) = found(parsed(TEXT), static)
    assert (first.what, first.is_needed) == ("fix dims", True)
    assert list(first.changes["dims"]) == ["N"]
    assert whats(found(parsed(FIXED), static)) == BEYOND
    assert fixing(parsed(FIXED)) is None


@pytest.mark.parametrize(
    ("dtypes", "text", "expected"),
    [
        ({DataType.FLOAT16}, FIXED, ["compute in float16"]),
        ({DataType.INT8}, FIXED, ["quantise first"]),
        ({DataType.FLOAT, DataType.FLOAT16}, FIXED, []),
        ({DataType.INT8}, WEIGHT, []),
    ],
)
def test_a_target_without_float32_needs_another_precision(
    dtypes: set[int], text: str, expected: list[str]
) -> None:
    target = Backend(name="few", unlisted="standard", activations=frozenset(dtypes))
    assert whats(found(parsed(text), target), needed=True) == expected


def test_int64_that_is_refused_may_be_int32() -> None:
    target = Backend(name="few", unlisted="standard", activations=frozenset({DataType.FLOAT}))
    model = parsed("(int64[2] x) => (int64[2] y) { y = Abs(x) }")
    assert whats(found(model, target)) == ["int64 to int32", *BEYOND]


def test_any_runtime_may_open_an_older_version() -> None:
    assert [each.changes for each in for_any_runtime()] == [{"ir": 10}, {"opset": 21, "ir": 10}]


def test_what_makes_a_model_smaller_is_offered_once() -> None:
    plain, model = PrepareOptions(), parsed(TEXT)
    ints = Backend(name="ints", unlisted="standard", quantization=Quantization(form="qdq"))
    texts, dims, half = "remove texts and inner names", "fix dims", "compute in float16"
    assert whats(gaining(model, plain, None)) == [texts, dims, half, "weights in 8 bits"]
    assert whats(gaining(model, plain, ints)) == [texts, dims, half, "quantise"]
    assert whats(gaining(model, PrepareOptions(dims={"N": 2}), ints)) == [texts, half, "quantise"]
    assert whats(gaining(model, PrepareOptions(to=("fp16",)), None)) == [texts, dims]
    assert whats(gaining(model, PrepareOptions(to=("int32",)), None))[-1] == "weights in 8 bits"
    assert whats(gaining(parsed(WEIGHT), plain, None)) == [texts]
    wide = parsed(WEIGHT.replace("float16", "float"))
    assert whats(gaining(wide, plain, None)) == [texts, half, "weights in 8 bits"]


def test_which_changes_are_needed_or_offered() -> None:
    dynamic = Backend(name="dynamic", unlisted="standard")
    assert whats(found(parsed(TEXT), dynamic)) == BEYOND
    edit = PipelineEdit.parse("before legalize: convert_opset{to=17}")
    edited = Backend(name="own", unlisted="standard", opset=Bounds(13, 17), edits=(edit,))
    assert whats(found(parsed(FIXED), edited), needed=True) == []
    assert whats(found(parsed(FIXED), edited)) == ["opset 17", "opset 17, with bodies", *BEYOND]
    late = Backend(name="late", unlisted="standard", opset=Bounds(15, 21))
    assert whats(found(parsed(FIXED, opset=13), late)) == ["opset 15", "opset 15, with bodies",
                                                           *BEYOND]  # fmt: skip
    model = parsed(FIXED)
    model.set_ir_version(8)
    assert whats(found(model, dynamic)) == BEYOND
    last = found(parsed(FIXED), dynamic)[-1]
    assert (last.why, last.changes) == ("exact replacements do not suffice", {"opt_level": 4})


def test_unnamed_dims_are_fixed_by_shapes() -> None:
    model = parsed("(float[?,2] x) => (float[?,2] y) { y = Relu(x) }")
    remedy = fixing(model)
    assert remedy is not None
    assert (remedy.what, remedy.why) == ("fix dims", "dims are dynamic")
    assert (list(remedy.changes["dims"]), list(remedy.changes["input_shapes"])) == ([], ["x"])


def test_what_a_quantised_model_is_offered() -> None:
    text = """(float[2] x) => (float[2] y) <float s = {0.1}, int8 z = {0}> {
        q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }"""
    assert whats(gaining(parsed(text), PrepareOptions(), None)) == ["remove texts and inner names"]
    shapes = PrepareOptions(input_shapes={"x": [1, 2]})
    assert "fix dims" not in whats(gaining(parsed(TEXT), shapes, None))
    other = Backend(name="other", unlisted="standard")
    assert whats(gaining(parsed(FIXED), PrepareOptions(), other)) == [
        "remove texts and inner names", "compute in float16"
    ]  # fmt: skip
