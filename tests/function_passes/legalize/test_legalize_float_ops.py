import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_equal, run_both
from tiered import Model, PassContext, get_pass
from tiered.support.numerics import Numerics
from tiered.targets.reading import backend_of
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "legalize_float_ops"


def test_small_integers_are_compared_in_float() -> None:
    head = "(int8[N] a, int8[N] b) => (int8[N] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Max(a, b) }}",
        f"{head} {{ p = Cast<to=1>(a) q = Cast<to=1>(b) m = Max(p, q) y = Cast<to=3>(m) }}",
    )


def test_results_of_other_types_stay() -> None:
    """The indices of TopK, and those of equal elements are the first."""
    text = "(uint8[4] x) => (uint8[2] y, int64[2] i) <int64[1] k = {2}> { y, i = TopK(x, k) }"
    assert_equal(PASS, text, {"x": np.array([1, 5, 5, 2], np.uint8)})


def test_the_range_of_a_converted_integer_is_known() -> None:
    text = (
        "(int8[2] x) => (bool[2] y) <int32[2] c = {16777216, -16777216}> "
        "{ a = Cast<to=6>(x) y = Less(a, c) }"
    )
    assert_equal(PASS, text, {"x": np.array([1, -1], np.int8)})


def test_arithmetic_on_demand() -> None:
    text = "(int32[4] a, int32[4] b) => (int32[4] y) { y = Div(a, b) }"
    feeds = {"a": np.array([-7, 5, 9, 2], np.int32), "b": np.array([2, 2, -4, 1], np.int32)}
    assert_equal(PASS, text, feeds, numerics="approximate")


def test_what_the_option_gets_wrong() -> None:
    """Beyond 2**24 float has not all integers, and a double has digits that float has not."""
    text = "(int32[1] a, int32[1] b) => (int32[1] y) { y = Add(a, b) }"
    feeds = {"a": np.array([2**24], np.int32), "b": np.array([1], np.int32)}
    before, after, _ = run_both(PASS, text, feeds, numerics="approximate")
    assert (before["y"].item(), after["y"].item()) == (2**24 + 1, 2**24)
    text = "(double[1] x) => (double[1] y) { y = Relu(x) }"
    before, after, _ = run_both(PASS, text, {"x": np.array([0.1])}, numerics="approximate")
    assert before["y"].item() != after["y"].item()
    assert get_pass(PASS, numerics="approximate").info.numerics is Numerics.APPROXIMATE


@pytest.mark.parametrize("numerics", ["exact", "approximate"])
def test_legalize_goes_as_far_as_its_class(numerics: str) -> None:
    floats = {"types": {"T": ["float"]}}
    table = {"api_version": 1, "name": "chip", "operators": {"Add": floats, "Cast": True}}
    backend = backend_of(table, "chip.toml", lambda name: {})
    model = Model.from_proto(parse("(int32[2] x) => (int32[2] y) { y = Add(x, x) }"))
    legalize = get_pass("legalize", numerics=numerics)
    legalize.apply(model, PassContext.isolated(opt_level=4, backend=backend))
    expected = ["Add"] if numerics == "exact" else ["Cast", "Add", "Cast"]
    assert [node.op_type for node in model.main.topological_order()] == expected


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (int8[1] x) => (int8[1] y) '
            "{ a = own.A(x) y = Relu(a) }",
            "the dtype of x is not known",
        ),
        ("(float[1] x) => (float[1] y) { y = Relu(x) }", "x is neither integer nor double"),
        ("(double[1] x) => (double[1] y) { y = Relu(x) }", "float has fewer digits than double"),
        (
            "(int8[1] x) => (int8[1] y) { y = Abs(x) }",
            "Abs may leave the range of its operands",
        ),
        ("(int32[1] x) => (int32[1] y) { y = Max(x, x) }", "an operand may exceed 2**24"),
        (
            "(int8[1] x) => (bool[1] y) <int32[1] c = {16777217}> "
            "{ a = Cast<to=6>(x) y = Less(a, c) }",
            "an operand may exceed 2**24",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
