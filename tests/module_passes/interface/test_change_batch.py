import numpy as np
import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, ShapeError, UsageError, get_pass, optimize_model
from tiered.runtime import Session
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "change_batch"
HEADS = """(float[4,6,8] x) => (float[4,6,8] y)
    <int64[4] s = {4,6,2,4}, int64[3] m = {8,6,4}, int64[4] u = {4,2,6,4}, int64[3] t = {4,6,-1}> {
    a = Reshape(x, s)  b = Transpose<perm = [0,2,1,3]>(a)  c = Reshape(b, m)  d = Relu(c)
    e = Reshape(d, u)  f = Transpose<perm = [0,2,1,3]>(e)  y = Reshape(f, t) }"""


def shapes(proto: onnx.ModelProto) -> list[list[int | str]]:
    infos = (*proto.graph.input, *proto.graph.output)
    dims = [info.type.tensor_type.shape.dim for info in infos]
    return [
        [d.dim_value if d.HasField("dim_value") else d.dim_param for d in each] for each in dims
    ]


def test_a_static_batch_gets_another_size() -> None:
    assert_rewrites(
        PASS,
        "(float[4,3] x) => (float[4,3] y) { y = Relu(x) }",
        "(float[16,3] x) => (float[16,3] y) { y = Relu(x) }",
        runtime="none",
        size=16,
    )


def test_a_static_batch_becomes_dynamic_through_reshapes() -> None:
    made = assert_undone(PASS, HEADS, size="batch")
    assert shapes(made) == [["batch", 6, 8], ["batch", 6, 8]]
    x = np.random.default_rng(0).standard_normal((8, 6, 8), np.float32)
    expected = [Session(parse(HEADS)).run({"x": part})["y"] for part in (x[:4], x[4:])]
    np.testing.assert_array_equal(Session(made).run({"x": x})["y"], np.concatenate(expected))


def test_the_dynamic_result_is_compared_at_other_sizes() -> None:
    result = optimize_model(parse(HEADS), passes=[get_pass(PASS, size="N")], verify=True)
    assert result.verify is not None
    assert [o.name for o in result.verify.comparisons[0].outputs] == ["y"]
    shapes = [sample.inputs.feeds["x"].shape for sample in result.verify.samples]
    assert shapes == [(8, 6, 8), (1, 6, 8)]


def test_the_batch_may_be_at_another_axis() -> None:
    text = """(float[6,4,8] x, float[4] z) => (float[6,8,4] y) <int64[3] s = {6,8,4}, int64[3] t = {6,8,4}> {
        y = Reshape(x, s) }"""
    made = assert_undone(PASS, text, axes={"x": 1, "z": 0}, size=2)
    assert shapes(made) == [[6, 2, 8], [2], [6, 4, 4]]


def test_a_dynamic_batch_gets_a_size() -> None:
    text = "(float[N,3] x, float[N] z, float[M] u) => (float[N,3] y) { y = Relu(x) }"
    assert shapes(assert_undone(PASS, text, size=2)) == [[2, 3], [2], ["M"], [2, 3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "(float[4,6] x) => (float[2,12] y) <int64[2] s = {2,-1}> { [view] y = Reshape(x, s) }",
            "Reshape 'view': it makes .* baked into its constant",
        ),
        (
            """(float[4,6] x) => (float[3,8] y) <int64[2] s = {3,8}> {
            [view] y = Reshape(x, s) }""",
            "Reshape 'view': it makes .* baked into its constant",
        ),
        (
            "(float[4,6] x) => (float[4,6] y) <float[4,1] w = {1,2,3,4}> { y = Add(x, w) }",
            "Add 'y': its constant 'w' bakes the batch of 4: it has other numbers for each sample",
        ),
    ],
)
def test_what_bakes_the_batch_is_named(text: str, message: str) -> None:
    model = Model.from_proto(parse(text))
    with pytest.raises(ShapeError, match=message):
        get_pass(PASS, size=8).apply(model)
    assert model.main.inputs[0].dim(0) == 4


def test_a_batch_that_is_there_stays() -> None:
    text = "(float[4,3] x) => (float[4,3] y) { y = Relu(x) }"
    assert_unchanged(PASS, text, because="the batch has this size", size=4)


def test_a_model_without_a_batch_is_an_error() -> None:
    model = Model.from_proto(parse("(float x) => (float y) { y = Relu(x) }"))
    with pytest.raises(
        UsageError, match="no input has a batch; expected one with at least one axis"
    ):
        get_pass(PASS).apply(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "a batch cannot have the size 0"),
        ({"size": "=N"}, "'=N' is no size"),
        ({"axes": {"q": 0}}, "the model has no input 'q'"),
        ({"axes": {"x": 2}}, "'x' has rank 2, and no axis 2"),
        ({"axes": {"x": 0, "z": 0}}, "the inputs have the batches"),
        ({"axes": {"x": 0}, "size": "M"}, "dim 1 of input 'z' is 'M' too; give the batch another"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    text = "(float[4,3] x, float[5,M] z) => (float[4,3] y) { y = Relu(x) }"
    with pytest.raises(UsageError, match=message):
        get_pass(PASS, **options).apply(Model.from_proto(parse(text)))


def test_an_empty_batch_is_an_error() -> None:
    model = Model.from_proto(parse("(float[0,3] x) => (float[0,3] y) { y = Relu(x) }"))
    with pytest.raises(UsageError, match="the batch of 'x' is empty"):
        get_pass(PASS).apply(model)
