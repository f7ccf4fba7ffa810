import numpy as np
import onnx
import pytest

from tests.rollback import assert_undone
from tiered import DataType, Model, PassContext, UsageError, get_pass, optimize_model
from tiered.runtime import Session
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "remove_input_cast"
IDS = "(float16[N] x) => (float[N] y) { c = Cast<to = 1>(x)  y = Neg(c) }"


def test_the_input_has_the_dtype_of_the_cast() -> None:
    assert_rewrites(PASS, IDS, "(float[N] x) => (float[N] y) { y = Neg(x) }", runtime="none")


def test_a_cast_may_read_a_cast() -> None:
    text = "(int8[N] x) => (float[N] y) { b = Cast<to = 10>(x)  c = Cast<to = 1>(b)  y = Neg(c) }"
    assert_rewrites(PASS, text, "(float[N] x) => (float[N] y) { y = Neg(x) }", runtime="none")
    result = optimize_model(parse(text), passes=[get_pass(PASS)], verify=True)
    assert result.verify is not None
    assert result.verify.comparisons


def test_several_casts_and_bodies_read_the_input_itself() -> None:
    made = assert_undone(
        PASS,
        """(float16[2] x, bool c) => (float[2] y, float[2] z) {
            z = Cast<to = 1>(x)
            y = If(c) <then_branch = t () => (float[2] a) { a = Cast<to = 1>(x) },
                       else_branch = e () => (float[2] b) { d = Cast<to = 1>(x)  b = Neg(d) }> }""",
    )
    onnx.checker.check_model(made, full_check=True)
    x = np.array([1.5, 70000], np.float32)
    found = Session(made).run({"x": x, "c": np.array(False)})
    np.testing.assert_array_equal(found["y"], -x)
    np.testing.assert_array_equal(found["z"], x)


@pytest.mark.parametrize(
    "text",
    [
        IDS,
        """(float[2] x, bool c) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] a) { i = Cast<to = 7>(x)  a = Cast<to = 1>(i) },
                       else_branch = e () => (float[2] b) { j = Cast<to = 7>(x)  b = Cast<to = 1>(j) }> }""",
    ],
)
def test_it_is_verified_with_what_the_cast_gave(text: str) -> None:
    result = optimize_model(parse(text), passes=[get_pass(PASS)], verify=True)
    assert result.verify is not None
    assert [o.name for o in result.verify.comparisons[0].outputs] == ["y"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(float[2] x) => (float[2] y) { y = Neg(x) }", "no input is read by Casts only"),
        (
            "(float16[2] x) => (float[2] y, float16[2] z) { y = Cast<to = 1>(x)  z = Neg(x) }",
            "a user of the input is no Cast",
        ),
        (
            "(float16[2] x) => (float[2] y, double[2] z) { y = Cast<to = 1>(x)  z = Cast<to = 11>(x) }",
            "the input is cast to several dtypes",
        ),
        (
            "(float16[2] x = {1, 2}, float[2] u) => (float[2] y) { c = Cast<to = 1>(x)  y = Add(c, u) }",
            "the input has a default",
        ),
        (
            "(float16[2] x) => (float16[2] x, float[2] y) { y = Cast<to = 1>(x) }",
            "the input is an output",
        ),
    ],
)
def test_it_stays_where_the_dtype_is_needed(text: str, reason: str) -> None:
    assert_unchanged(PASS, text, because=reason)


def test_an_input_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="the model has no input 'z'; it has x"):
        get_pass(PASS, inputs=["z"])(parse(IDS))


def test_reasons_are_met() -> None:
    two = "(float16[2] x, float[2] u) => (float[2] y, float16[2] z) { y = Cast<to = 1>(x)  z = Neg(x) }"
    assert_unchanged(PASS, two, because="a user of the input is no Cast", inputs=["x"])
    twice = (
        "(float16[2] x) => (float[2] y, double[2] z) { y = Cast<to = 1>(x)  z = Cast<to = 11>(x) }"
    )
    assert_unchanged(PASS, twice, because="the input is cast to several dtypes")
    default = "(float16[2] x = {1, 2}) => (float[2] y) { y = Cast<to = 1>(x) }"
    assert_unchanged(PASS, default, because="the input has a default")
    shown = "(float16[2] x) => (float16[2] x, float[2] y) { y = Cast<to = 1>(x) }"
    assert_unchanged(PASS, shown, because="the input is an output")
    none = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    assert_unchanged(PASS, none, because="no input is read by Casts only")


@pytest.mark.parametrize("middle", ["INT64", "BOOL", "FLOAT16"])
def test_issue_40_a_round_trip_is_what_the_model_computes(middle: str) -> None:
    model = parse(
        f"(float[2] i) => (float[2] y) {{ j = Cast<to={DataType[middle].value}>(i)"
        " f = Cast<to=1>(j) y = Neg(f) }"
    )
    ctx = PassContext.isolated()
    view = Model.from_proto(model)
    get_pass(PASS).apply(view, ctx)
    made = view.to_proto()
    assert made.graph.input[0].type.tensor_type.elem_type == DataType[middle]
    assert [node.op_type for node in made.graph.node] == ["Cast", "Neg"]
    x = np.array([1.7, -2.6], np.float32)
    feeds = {"i": x.astype(DataType[middle].numpy)}
    np.testing.assert_array_equal(Session(made).run(feeds)["y"], Session(model).run({"i": x})["y"])
