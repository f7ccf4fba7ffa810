import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, ShapeError, TargetError, UsageError, get_pass, optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "const_batch_size"


def shapes(proto: onnx.ModelProto) -> list[list[int | str]]:
    infos = (*proto.graph.input, *proto.graph.output)
    dims = [info.type.tensor_type.shape.dim for info in infos]
    return [
        [d.dim_value if d.HasField("dim_value") else d.dim_param for d in each] for each in dims
    ]


def test_the_batch_becomes_one() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }",
        "(float[1,3] x) => (float[1,3] y) { y = Relu(x) }",
        runtime="none",
    )


def test_every_input_with_a_dynamic_first_dim_gets_the_size() -> None:
    text = "(float[N,L] x, float[?,3] z, float[4,N] k, float[M] w, float s) => (float[N,L] y) { y = Relu(x) }"
    made = assert_undone(PASS, text, batch_size=8)
    assert shapes(made) == [[8, "L"], [8, 3], [4, 8], [8], [], [8, "L"]]


def test_an_input_whose_first_dim_is_no_batch_is_kept() -> None:
    text = "(float[N,3] x, float[L,N] z) => (float[N,3] y) { y = Relu(x) }"
    assert shapes(assert_undone(PASS, text, keep=["z"])) == [[1, 3], ["L", 1], [1, 3]]


def test_a_batch_that_is_there_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,N] x) => (float[1,N] y) { y = Relu(x) }",
        because="the batch has this size already",
    )


@pytest.mark.parametrize("shape", ["[2,N]", ""])
def test_without_a_dynamic_batch_it_cannot_be_done(shape: str) -> None:
    text = f"(float{shape} x) => (float{shape} y) {{ y = Relu(x) }}"
    assert_unchanged(PASS, text, because="no input has a dynamic first dim")
    with pytest.raises(TargetError, match=r"const_batch_size cannot do .* no input has a dynamic"):
        optimize(parse(text), passes=[PASS])


def test_options_that_cannot_be() -> None:
    model = Model.from_proto(parse("(float[N] x) => (float[N] y) { y = Relu(x) }"))
    with pytest.raises(UsageError, match="the model has no input 'z'; it has x"):
        get_pass(PASS, keep=["z"]).apply(model, PassContext.isolated())
    with pytest.raises(UsageError, match="a batch cannot have the size -1"):
        get_pass(PASS, batch_size=-1).apply(model, PassContext.isolated())


def test_a_batch_that_is_baked_into_a_reshape_is_named() -> None:
    model = Model.from_proto(
        parse(
            "(float[N,6] x) => (float[4,2,3] y) <int64[3] s = {4,2,3}> { [view] y = Reshape(x, s) }"
        )
    )
    with pytest.raises(ShapeError, match=r"Reshape 'view' makes \[4, 2, 3\] of \[1, 6\]"):
        get_pass(PASS).apply(model, PassContext.isolated())


def test_it_runs_only_when_asked_for() -> None:
    info = get_pass("ConstBatchSize").info
    assert (info.name, info.opt_level, info.changes_interface) == (PASS, None, True)


def test_only_named_inputs_have_a_batch() -> None:
    text = "(float[N] x, float[M] z) => (float[N] y, float[M] w) { y = Neg(x) w = Neg(z) }"
    made = get_pass(PASS, batch_size=4, only=["z"])(parse(text))
    assert shapes(made) == [["N"], [4], ["N"], [4]]
    with pytest.raises(UsageError, match="the model has no input 'v'"):
        get_pass(PASS, only=["v"]).apply(Model.from_proto(parse(text)), PassContext.isolated())
