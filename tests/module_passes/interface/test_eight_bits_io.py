import numpy as np
import pytest

from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass, optimize_model
from tiered.runtime import Session
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eight_bits_io"
TEXT = "(float[1,3,2,2] img) => (float[1,3,2,2] y) { y = Relu(img) }"
PIXELS = np.arange(256, dtype=np.uint8)


def test_pixels_become_the_float_image() -> None:
    assert_rewrites(
        PASS,
        TEXT,
        """(uint8[1,3,2,2] img) => (float[1,3,2,2] y)
            <float[1,3,1,1] sc = {0.5, 0.25, 2}, float[1,3,1,1] bi = {0, -1, 3}> {
            f = Cast<to=1>(img)  m = Mul(f, sc)  n = Add(m, bi)  y = Relu(n) }""",
        runtime="none",
        name="img",
        scale=[0.5, 0.25, 2.0],
        bias=[0.0, -1.0, 3.0],
    )


def test_all_pixels_are_what_numpy_computes_in_the_last_axis_too() -> None:
    text = "(float[N,128,2] x, float z = {2}) => (float[N,128,2] y) { y = Mul(x, z) }"
    scale, bias = [1 / 57.1, -1 / 58.4], [-2.1, 0.3]
    made = assert_undone(PASS, text, scale=scale, bias=bias, axis=-1)
    pixels = PIXELS.reshape(1, 128, 2)
    scales, biases = (np.array(each, np.float32) for each in (scale, bias))
    expected = (pixels.astype(np.float32) * scales + biases) * np.float32(2)
    np.testing.assert_array_equal(Session(made).run({"x": pixels})["y"], expected)


def test_one_number_is_for_all_channels_and_nothing_is_computed_in_vain() -> None:
    made = assert_undone(PASS, TEXT)
    assert [node.op_type for node in made.graph.node] == ["Cast", "Relu"]
    made = assert_undone(PASS, TEXT, scale=[0.5])
    assert [node.op_type for node in made.graph.node] == ["Cast", "Mul", "Relu"]
    # 0 * -0.5 is -0.0, and the sum with 0.0 is not.
    made = assert_undone(PASS, TEXT, scale=[-0.5])
    assert [node.op_type for node in made.graph.node] == ["Cast", "Mul", "Add", "Relu"]


def test_a_float16_image_is_computed_in_float32_and_rounded_once() -> None:
    scale, bias = [0.0171, 0.0175, 0.0174], [-2.11, -2.03, -1.80]
    text = TEXT.replace("float", "float16")
    made = assert_undone(PASS, text, scale=scale, bias=bias)
    assert [node.op_type for node in made.graph.node] == ["Cast", "Mul", "Add", "Cast", "Relu"]
    done = get_pass(PASS, scale=scale, bias=bias)
    result = optimize_model(parse(text), passes=[done], verify=True)
    assert result.verify is not None
    assert [node.op_type for node in assert_undone(PASS, text).graph.node] == ["Cast", "Relu"]


def test_bodies_read_the_float_image() -> None:
    made = assert_undone(
        PASS,
        """(float[2] x, bool c) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                       else_branch = e () => (float[2] b) { b = Identity(x) }> }""",
        name="x",
        scale=[2.0],
    )
    pixels = np.array([3, 255], np.uint8)
    found = Session(made).run({"x": pixels, "c": np.array(True)})["y"]
    np.testing.assert_array_equal(found, np.array([-6, -510], np.float32))


def test_it_is_verified_with_the_images_of_the_pixels() -> None:
    done = get_pass("rewrite_input_dtype", scale=[0.017, 0.018, 0.019], bias=[-2.1, -2.0, -1.8])
    result = optimize_model(parse(TEXT), passes=[done], verify=True)
    assert result.verify is not None
    assert [o.name for o in result.verify.comparisons[0].outputs] == ["y"]


def test_inputs_that_stay() -> None:
    assert_unchanged(
        PASS, "(uint8[2] x) => (uint8[2] y) { y = Identity(x) }", because="the input is uint8"
    )
    assert_unchanged(
        PASS,
        "(int64[2] x) => (int64[2] y) { y = Neg(x) }",
        because="the input is not float, float16 or double",
    )
    default = "(float[2] x = {1, 2}) => (float[2] y) { y = Neg(x) }"
    assert_unchanged(PASS, default, because="the input has a default", name="x")
    shown = "(float[2] x) => (float[2] x, float[2] y) { y = Neg(x) }"
    assert_unchanged(PASS, shown, because="the input is an output")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TEXT, {"name": "image"}, "the model has no input 'image'"),
        (TEXT, {"scale": [1.0, 2.0]}, "has 3 channels at axis 1, and 2 numbers are given"),
        (TEXT, {"scale": [1.0, 2.0], "axis": 4}, "has rank 4, and no axis 4"),
        (
            "(float x, float z) => (float y) { y = Add(x, z) }",
            {},
            "has the inputs x, z; give a name",
        ),
        (
            "(float[] x) => (float[] y) { y = Neg(x) }",
            {"scale": [1.0, 2.0]},
            "the rank of .x. is unknown",
        ),
    ],
)
def test_numbers_that_do_not_fit(text: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_pass(PASS, **options).apply(Model.from_proto(parse(text)))
