from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.extensions.debug import compare_models
from tiered.extensions.debug.models import (
    ModelComparison,
    OutputRow,
    Trial,
    _check_inputs,
    _sizes,
    class_of,
    describe_output,
)
from tiered.runtime.compare.outputs import OutputDifference
from tiered.support.errors import RuntimeFailure, ShapeError, UsageError, VerificationError
from tiered.support.numerics import Numerics, Promise
from tiered.testing import parse

RIGHT = "(float[n,4] x) => (float[n,4] y) { y = Mul(x, x) }"
WRONG = "(float[n,4] x) => (float[n,4] y) { z = Neg(x)  y = Mul(x, z) }"


def test_a_model_is_like_itself_on_two_bindings() -> None:
    found = compare_models(parse(RIGHT), parse(RIGHT), numerics="exact")
    assert found.ok
    assert len(found.trials) == 2
    assert found.trials[0].dims != found.trials[1].dims
    assert found.trials[0].rows[0].argmax == 1.0


def test_sizes_may_be_given() -> None:
    two = "(float[n,m] x) => (float[n,m] y) { y = Mul(x, x) }"
    found = compare_models(parse(two), parse(two), shapes={"x": [6, -1]})
    assert [trial.dims["n"] for trial in found.trials] == [6, 6]
    assert found.trials[0].dims["m"] != found.trials[1].dims["m"]
    # What the second model fixes comes first.
    found = compare_models(parse(two), parse(two.replace("[n,", "[3,")), shapes={"x": [6, 2]})
    assert [trial.dims for trial in found.trials] == [{"n": 3, "m": 2}] * len(found.trials)
    with pytest.raises(UsageError, match="no input 'z'; it has x"):
        compare_models(parse(two), parse(two), shapes={"z": [6, 2]})
    with pytest.raises(ShapeError, match="dim 0 of input 'x' is 3"):
        compare_models(parse(two.replace("[n,", "[3,")), parse(two), shapes={"x": [6, 2]})


def test_each_output_is_measured() -> None:
    found = compare_models(parse(RIGHT), parse(WRONG))
    row = found.trials[0].rows[0]
    assert not found.ok
    assert row.difference.cosine == pytest.approx(-1.0)
    assert row.argmax is not None
    assert row.argmax < 1.0
    assert row.dtype == "float32"
    with pytest.raises(VerificationError, match="the second model computes something else"):
        found.raise_if_different()


def test_feeds_may_be_given() -> None:
    feeds = [{"x": np.array([[np.nan, 1, 2, 3]], np.float32)}]
    found = compare_models(parse(RIGHT), parse(WRONG), inputs=feeds)
    row = found.trials[0].rows[0]
    assert row.nans == (1, 1)
    assert row.difference.nan_mismatch == 0
    assert found.trials[0].rules == {"x": "given"}


def test_nans_that_moved_are_counted() -> None:
    root = "(float[4] x) => (float[4] y) { y = Sqrt(x) }"
    clean = "(float[4] x) => (float[4] y) { a = Abs(x)  y = Sqrt(a) }"
    feeds = [{"x": np.array([-1, 1, -2, 4], np.float32)}]
    row = compare_models(parse(root), parse(clean), inputs=feeds).trials[0].rows[0]
    assert row.nans == (2, 0)
    assert row.difference.nan_mismatch == 2


def test_a_tolerance_may_be_given() -> None:
    near = "(float[n,4] x) => (float[n,4] y) <float k = {1.001}> { a = Mul(x, x)  y = Mul(a, k) }"
    assert not compare_models(parse(RIGHT), parse(near)).ok
    assert compare_models(parse(RIGHT), parse(near), rtol=1e-2).ok
    with pytest.raises(UsageError, match="no tolerance"):
        compare_models(parse(RIGHT), parse(near), rtol=1e-2, numerics="exact")


def test_an_output_that_is_missing_is_a_difference() -> None:
    two = "(float[n,4] x) => (float[n,4] y, float[n,4] z) { y = Mul(x, x)  z = Neg(x) }"
    rows = compare_models(parse(two), parse(RIGHT)).trials[0].rows
    assert [row.difference.reason for row in rows] == ["", "is missing"]


def test_a_first_model_that_does_not_run_says_nothing_about_the_second() -> None:
    broken = "(float[2] x) => (float[2] y) { y = com.microsoft.Nothing(x) }"
    with pytest.raises(RuntimeFailure):
        compare_models(parse(broken), parse(RIGHT))
    with pytest.raises(VerificationError, match="but not the second"):
        compare_models(parse(RIGHT), parse(broken))


def test_a_second_model_that_fails_while_running_is_a_difference() -> None:
    gather = """(float[n,4] x) => (float[n,4] y) <int64[1] i = {9}> {
        g = Gather(x, i)  y = Add(x, g) }"""
    with pytest.raises(VerificationError, match="runs, but not the second"):
        compare_models(parse(RIGHT), parse(gather))


# Squares of halves: 300 * 300 is no finite half, and no bfloat16 has more than 8 bits.
WIDE = "(float[2] x) => (float[2] y) { a = Mul(x, x)  y = Div(a, x) }"
HALF = """(float[2] x) => (float[2] y) {
    h = Cast <to = 10> (x)  a = Mul(h, h)  d = Div(a, h)  y = Cast <to = 1> (d) }"""
LARGE = [{"x": np.array([300, 2], np.float32)}]


@pytest.mark.parametrize("numerics", ["exact", "lossy"])
def test_halves_that_overflow_differ_although_onnxruntime_keeps_them_wide(numerics: str) -> None:
    found = compare_models(parse(WIDE), parse(HALF), inputs=LARGE, numerics=numerics)
    assert not found.ok
    assert found.trials[0].rows[0].difference.max_abs == np.inf
    assert found.referee.runtime == "onnx.reference"
    assert "as a model has 16-bit floats" in found.referee.why


def test_bfloat16_which_onnxruntime_does_not_run_is_judged() -> None:
    text = "(bfloat16[2] x) => (bfloat16[2] y) { a = Mul(x, x)  y = Exp(a) }"
    feeds = [{"x": np.array([0.5, 1.5], ml_dtypes.bfloat16)}]
    assert compare_models(parse(text), parse(text), inputs=feeds, numerics="exact").ok
    other = parse(text.replace("Exp", "Neg"))
    assert not compare_models(parse(text), other, inputs=feeds, numerics="lossy").ok


def test_halves_that_the_reference_does_not_run_are_rounded_node_by_node() -> None:
    gelu = "h = Cast <to = 10> (x)  g = com.microsoft.Gelu(h)"
    tail = "y = Cast <to = 1> (d) }"
    wide = parse(f"(float[2] x) => (float[2] y) {{ {gelu}  w = Cast<to=1>(g)  y = Mul(w, w) }}")
    half = parse(f"(float[2] x) => (float[2] y) {{ {gelu}  d = Mul(g, g)  {tail}")
    for model in (wide, half):
        model.opset_import.add(domain="com.microsoft", version=1)
    found = compare_models(wide, half, inputs=LARGE, numerics="lossy")
    assert found.referee.runtime == "onnxruntime node by node"
    assert "onnx.reference does not run both" in found.referee.why
    assert not found.ok, "300 * 300 is infinite in half"


def test_models_without_halves_stay_with_onnxruntime() -> None:
    found = compare_models(parse(RIGHT), parse(RIGHT))
    assert (found.referee.runtime, found.referee.why) == ("onnxruntime", "")


def test_a_second_model_of_halves_that_does_not_run_anywhere_is_a_difference() -> None:
    broken: Any = HALF.replace("Div", "com.microsoft.Nothing")
    with pytest.raises(VerificationError, match="but not the second"):
        compare_models(parse(WIDE), parse(broken), inputs=LARGE)


def test_an_interface_in_halves_is_fed_halves() -> None:
    wide = parse("(float[2] x) => (float[2] y) { a = Mul(x, x)  y = Neg(a) }")
    half = parse("(float16[2] x) => (float16[2] y) { a = Mul(x, x)  y = Neg(a) }")
    small = [{"x": np.array([1.0001, 2], np.float32)}]
    assert compare_models(wide, half, inputs=small, numerics="lossy").ok
    assert not compare_models(wide, half, inputs=small, numerics="exact").ok
    assert not compare_models(wide, half, inputs=LARGE, numerics="lossy").ok


def test_inputs_of_other_names_are_named() -> None:
    first = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    second = parse("(float[2] image, float[2] z) => (float[2] y) { y = Add(image, z) }")
    with pytest.raises(
        UsageError, match=r"needs the inputs 'image', 'z', .*the first has 'x', the second"
    ):
        compare_models(first, second)


def test_an_input_with_a_default_may_be_missing() -> None:
    first = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    text = "(float[2] x, float[2] b) => (float[2] y) <float[2] b = {0, 0}> { y = Relu(x) }"
    assert compare_models(first, parse(text)).ok


# --- without a runtime ----------------------------------------------------------------------------


def test_figures_of_outputs() -> None:
    nan = float("nan")
    one = np.array([[1, 2], [4, 3]], np.float32)
    for expected, actual, dtype, shape, argmax, nans in (
        (one, one, "float32", (2, 2), 1.0, (0, 0)),
        (one, one[::-1], "float32", (2, 2), 0.0, (0, 0)),
        (one, np.array([[1, 2], [3, 4]], np.float32), "float32", (2, 2), 0.5, (0, 0)),
        (one, one[:1], "float32", (2, 2), None, (0, 0)),
        (one[:, :1], one[:, :1], "float32", (2, 1), None, (0, 0)),
        (one[:0], one[:0], "float32", (0, 2), None, (0, 0)),
        (one[0, 0, None].reshape(()), one[0, 0, None].reshape(()), "float32", (), None, (0, 0)),
        (np.array([1, nan]), np.array([nan, nan]), "float64", (2,), 0.0, (1, 2)),
        (np.array([1, nan]), np.array([1, 2]), "float64", (2,), 1.0, (1, 0)),
        (np.array([1, 2]), np.array([1, 2]), "int64", (2,), None, (0, 0)),
        (np.array(["a"]), np.array(["a"]), "string", (1,), None, (0, 0)),
        (np.array(["a"], object), np.array(["a"], object), "string", (1,), None, (0, 0)),
        (one, [1], "float32", (2, 2), None, (0, 0)),
        ([1], one, None, None, None, (0, 0)),
    ):
        found = describe_output(OutputDifference("y", True), expected, actual)
        assert (found.dtype, found.shape, found.argmax, found.nans) == (
            dtype, shape, argmax, nans
        ), (expected, actual)  # fmt: skip


def test_dims_that_the_second_model_fixes_come_before_those_that_are_given() -> None:
    for one, two, given, expected in (
        ("n,m", "n,m", {}, {}),
        ("n,m", "3,m", {}, {"x": [3, -1]}),
        ("n,m", "3,m", {"x": [5, 6]}, {"x": [3, 6]}),
        ("n,m", "3,m", {"x": [5]}, {"x": [5]}),
        ("n,m", "1,m", {"x": [5, 6]}, {"x": [1, 6]}),
        ("n,m", "3", {}, {}),
        ("n", "3,m", {}, {}),
        ("n,m", "n,m", {"z": [2]}, {"z": [2]}),
        ("n,m", "n,m", {"x": [2, -1]}, {"x": [2, -1]}),
    ):
        first, second = (
            parse(f"(float[{dims}] x) => (float[{dims}] y) {{ y = Relu(x) }}")
            for dims in (one, two)
        )
        assert _sizes(first, second, given) == expected, (one, two, given)


def test_a_class_follows_from_a_cosine_unless_it_is_given() -> None:
    assert class_of(None, None) is Numerics.REASSOCIATING
    assert class_of(None, 0.9) is Numerics.APPROXIMATE
    assert class_of("lossy", 0.9) is class_of(Numerics.LOSSY, None) is Numerics.LOSSY


def test_remarks_on_a_comparison() -> None:
    good, bad = OutputDifference("y", True), OutputDifference("z", False, reason="too far")
    noted = OutputDifference("r", True, note="random")
    for differences, ok, is_empty, remarks in (
        ([good], True, False, ["they agree"]),
        ([good, noted], True, False, ["they agree", str(noted)]),
        ([noted, noted], True, True, [str(noted)]),
        ([good, bad], False, False, ["they agree"]),
        ([], True, True, []),
    ):
        rows = tuple(map(OutputRow, differences))
        found = ModelComparison((Trial(rows, {}, {}),), Numerics.EXACT)
        assert (found.ok, found.is_empty) == (ok, is_empty)
        assert [*found.remarks("they agree")] == remarks
    twice = ModelComparison((Trial((OutputRow(bad),), {}, {}),) * 2, Numerics.EXACT)
    with pytest.raises(VerificationError) as raised:
        twice.raise_if_different("it")
    assert str(raised.value) == f"it computes something else (allowed: exact)\n  {bad}"


def test_one_input_of_another_name_is_named_with_both_lists() -> None:
    first = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    second = parse("(float[2] image) => (float[2] y) { y = Relu(image) }")
    with pytest.raises(UsageError) as raised:
        compare_models(first, second)
    assert str(raised.value) == (
        "the second model needs the input 'image', which the first lacks: the first has 'x', the "
        "second 'image'; `tiered optimize --passes 'rename{tensors={old: new}}'` gives an input "
        "another name"
    )


def test_inputs_that_the_first_model_lacks_are_named() -> None:
    proto = parse("(float[2] a, float[2] b, float[2] c) => (float[2] y) <float[2] c = {1,2}> {"
                  " d = Add(a, b)  y = Add(d, c) }")  # fmt: skip
    for first, lacking, there in (
        ((), "inputs 'a', 'b'", "none"), (("a",), "input 'b'", "'a'"),
        (("x", "b"), "input 'a'", "'x', 'b'"),
    ):  # fmt: skip
        one: Any = SimpleNamespace(inputs=first)
        two: Any = SimpleNamespace(inputs=("a", "b", "c"))
        with pytest.raises(UsageError) as raised:
            _check_inputs(one, two, proto)
        assert str(raised.value) == (
            f"the second model needs the {lacking}, which the first lacks: the first has {there}, "
            "the second 'a', 'b', 'c'; `tiered optimize --passes 'rename{tensors={old: new}}'` "
            "gives an input another name"
        )
    both: Any = SimpleNamespace(inputs=("a", "b"))
    _check_inputs(both, both, proto)


def test_inputs_are_varied_where_the_models_must_be_close(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def samples(*given: Any, varied: bool, **more: Any) -> Any:
        asked.append(varied)
        raise RuntimeFailure("enough")

    monkeypatch.setattr("tiered.extensions.debug.models.samples_of", samples)
    for numerics, varied in (
        ("exact", True), ("reassociating", True), ("approximate", False), ("lossy", False),
        (Promise(Numerics.EXACT), True), (Promise(Numerics.LOSSY), False), (None, True),
    ):  # fmt: skip
        with pytest.raises(RuntimeFailure, match="enough"):
            compare_models(parse(RIGHT), parse(RIGHT), numerics=numerics)
        assert asked.pop(0) == varied
        asked.clear()
