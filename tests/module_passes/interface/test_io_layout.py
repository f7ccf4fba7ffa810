from typing import Any

import numpy as np
import pytest

from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass, optimize_model
from tiered.runtime import Session
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "io_layout"
TEXT = "(float[N,3,4,5] x) => (float[N,3,4,5] y) { y = Relu(x) }"
BOTH: dict[str, Any] = {"inputs": {"x": "NCHW->NHWC"}, "outputs": {"y": "NCHW->NHWC"}}


def test_transposes_at_the_border_restore_the_order() -> None:
    assert_rewrites(
        PASS,
        TEXT,
        """(float[N,4,5,3] x) => (float[N,4,5,3] y) {
            a = Transpose<perm = [0,3,1,2]>(x)  b = Relu(a)  y = Transpose<perm = [0,2,3,1]>(b) }""",
        runtime="none",
        **BOTH,
    )


def test_only_what_is_named_changes_and_inner_users_keep_the_order() -> None:
    text = (
        "(float[2,3] x, float[2,3] z) => (float[2,3] y, float[2,3] q) { y = Add(x, z)  q = Neg(y) }"
    )
    made = assert_undone(PASS, text, inputs={"z": "AB->BA"}, outputs={"y": "AB->BA"})
    assert [info.name for info in made.graph.input] == ["x", "z"]
    assert [info.name for info in made.graph.output] == ["y", "q"]
    x, z = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    found = Session(made).run({"x": x, "z": z.T})
    np.testing.assert_array_equal(found["y"], (x + z).T)
    np.testing.assert_array_equal(found["q"], -x - z)


def test_it_is_verified_with_transposed_arrays() -> None:
    result = optimize_model(parse(TEXT), passes=[get_pass(PASS, **BOTH)], verify=True)
    assert result.verify is not None
    assert [o.name for o in result.verify.comparisons[0].outputs] == ["y"]


def test_layouts_that_are_there_stay() -> None:
    assert_unchanged(PASS, TEXT, because="no layouts are given")
    same = {"x": "NCHW->NCHW"}
    assert_unchanged(PASS, TEXT, because="the layouts are these already", inputs=same)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TEXT, {"inputs": {"x": "NHWC"}}, "'NHWC' is no change of a layout; expected NCHW->NHWC"),
        (TEXT, {"inputs": {"x": "NCHW->NHWW"}}, "is no change of a layout"),
        (TEXT, {"inputs": {"x": "NCW->NWC"}}, "'x' has rank 4, not the axes of NCW"),
        (TEXT, {"outputs": {"x": "NCHW->NHWC"}}, "the model has no output 'x'"),
        (
            "(float[2,3] x) => (float[2,3] y, float[2,3] x) { y = Neg(x) }",
            {"outputs": {"x": "AB->BA"}},
            "output 'x' is computed by no node; change the input",
        ),
        (
            "(float[2,3] x = {1,2,3,4,5,6}) => (float[2,3] y) { y = Neg(x) }",
            {"inputs": {"x": "AB->BA"}},
            "has a default, so it keeps its layout",
        ),
    ],
)
def test_layouts_that_do_not_fit(text: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_pass(PASS, **options).apply(Model.from_proto(parse(text)))
