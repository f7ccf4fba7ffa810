from typing import Any

import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, ShapeError, UsageError, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "const_input_shape"
TEXT = "(float[N,3] x, float[N,M] z) => (float[N,3] y) { h = Relu(x) y = Neg(h) }"


def dims(info: onnx.ValueInfoProto) -> list[int | str]:
    shape = info.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in shape]


def refused(text: str, error: type[Exception], match: str, **shape: list[int | str]) -> None:
    model = Model.from_proto(parse(text))
    with pytest.raises(error, match=match):
        get_pass(PASS, shape=shape).apply(model, PassContext.isolated())
    assert len(model.journal) == 0
    model.check_view()


def test_operands_that_do_not_broadcast_are_an_error() -> None:
    # A table of 4 positions, cut to the length of x: onnx does not infer that.
    text = """(float[N,3] x) => (float[N,3] y) <int64[1] zero = {0}, int64[1] one = {1},
        float[4,3] table = {1,2,3,4,5,6,7,8,9,10,11,12}> {
        shape = Shape(x)  length = Slice(shape, zero, one)  part = Slice(table, zero, length)
        y = Add(x, part) }"""
    wrong = r"does not work with x:5,3: Add 'y' cannot broadcast \[5, 3\] and \[4, 3\]"
    refused(text, ShapeError, wrong, x=[5, 3])
    model = Model.from_proto(parse(text))
    get_pass(PASS, shape={"x": [4, 3]}).apply(model, PassContext.isolated())
    branch = text.replace(
        "y = Add(x, part)",
        """y = If(c) <
        then_branch = t () => (float[M,3] p) { p = Add(x, part) },
        else_branch = e () => (float[M,3] q) { q = Identity(x) }>""",
    )
    branch = branch.replace("x) => (float[N,3] y)", "x, bool c) => (float[M,3] y)")
    inside = Model.from_proto(parse(branch))
    get_pass(PASS, shape={"x": [5, 3]}).apply(inside, PassContext.isolated())


def test_the_name_of_a_dim_becomes_its_size_everywhere() -> None:
    assert_rewrites(
        PASS,
        TEXT,
        "(float[2,3] x, float[2,M] z) => (float[2,3] y) { h = Relu(x) y = Neg(h) }",
        runtime="none",
        shape={"x": [2, 3]},
    )
    made = assert_undone(PASS, TEXT, shape={"x": [2, 3]})
    assert [dims(info) for info in (*made.graph.input, *made.graph.output)] == [
        [2, 3],
        [2, "M"],
        [2, 3],
    ]


def test_value_info_and_bodies_follow() -> None:
    text = "(float[N,3] x, bool c) => (float[N,3] y) { h = Relu(x) y = If(c) <then_branch = t () => (float[N,3] a) { a = Neg(h) }, else_branch = e () => (float[N,3] b) { k = Abs(x) b = Exp(k) }> }"
    proto = parse(text)
    body = proto.graph.node[1].attribute[1].g
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 1, ["N", 3]))
    body.value_info.append(onnx.helper.make_tensor_value_info("k", 1, ["N", 3]))
    made = assert_undone(PASS, proto, shape={"x": [5, -1]})
    bodies = [attribute.g for attribute in made.graph.node[1].attribute]
    infos = [*made.graph.value_info, *made.graph.output]
    infos += [info for each in bodies for info in (*each.output, *each.value_info)]
    assert [dims(info) for info in infos] == [[5, 3]] * 5
    onnx.checker.check_model(made, full_check=True)


def test_value_info_with_another_size_is_removed() -> None:
    proto = parse("(float[N,3] x) => (float[N,3] y) { h = Relu(x) k = Neg(h) y = Exp(k) }")
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 1, [1, 3]))
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("k", 1, ["N", 3]))
    made = assert_undone(PASS, proto, shape={"x": [4, 3]})
    assert [(info.name, dims(info)) for info in made.graph.value_info] == [("k", [4, 3])]


def test_the_inferred_types_follow() -> None:
    model = Model.from_proto(
        parse(
            "(float[N,3] x) => (float[K] y) { h = Concat<axis=0>(x, x) s = Shape(h) f = Cast<to=1>(s) k = Flatten<axis=0>(h) y = Add(f, f) }"
        )
    )
    h = model.main.values["h"]
    assert h.shape is not None
    assert not isinstance(h.shape[0], int)
    get_pass(PASS, shape={"x": [4, 3]}).apply(model, PassContext.isolated())
    assert h.shape == (8, 3)
    assert model.main.values["k"].shape == (1, 24)


def test_a_dim_may_get_another_name_or_stay() -> None:
    made = assert_undone(PASS, TEXT, shape={"z": ["batch", -1]})
    assert [dims(info) for info in made.graph.input] == [["batch", 3], ["batch", "M"]]


def test_dims_without_a_name_and_shapes_without_a_rank() -> None:
    proto = parse("(float[?,3] x, float[] z) => (float[?,3] y) { y = Relu(x) }")
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    made = assert_undone(PASS, proto, shape={"x": [2, 3], "z": [4, "k"]})
    assert [dims(info) for info in made.graph.input] == [[2, 3], [4, "k"]]


def test_shapes_that_are_set_already_change_nothing() -> None:
    assert_unchanged(PASS, TEXT, shape={"x": ["N", 3], "z": [-1, -1]})


def test_without_shapes_there_is_nothing_to_do() -> None:
    assert_unchanged(PASS, TEXT, because="no shape is given")


def test_shapes_as_pipeline_text() -> None:
    from tiered import parse_pipeline

    model = Model.from_proto(parse(TEXT))
    parse_pipeline("const_input_shape{shape={x: [2, 3], z: [-1, K]}}").apply(
        model, PassContext.isolated()
    )
    assert [dims(info) for info in model.to_proto().graph.input] == [[2, 3], [2, "K"]]


def test_an_input_that_does_not_exist() -> None:
    refused(TEXT, UsageError, r"the model has no input 'w'; it has x, z", w=[1])


def test_another_rank_or_another_size() -> None:
    refused(TEXT, ShapeError, r"input 'x' has 2 dims \(float\[N,3\]\), not 1", x=[2])
    refused(TEXT, ShapeError, r"dim 1 of input 'x' is 3 \(float\[N,3\]\), it cannot be 4", x=[2, 4])
    refused(TEXT, ShapeError, "dim 1 of input 'x' is 3 .*, it cannot be M", x=[2, "M"])
    refused(TEXT, ShapeError, "the dim 'N' would be both 2 and 3", x=[2, 3], z=[3, 1])


def test_an_input_that_is_no_tensor() -> None:
    refused(
        "(seq(float[N]) x) => (int64 y) { y = SequenceLength(x) }",
        ShapeError,
        "no dense tensor",
        x=[2],
    )


def test_a_batch_that_is_baked_into_a_reshape_is_named() -> None:
    refused(
        "(float[N,6] x) => (float[8,2,3] y) <int64[3] s = {8,2,3}> { [view] r = Reshape(x, s) y = Relu(r) }",
        ShapeError,
        r"does not work with x:1,6: Reshape 'view' makes \[8, 2, 3\] of \[1, 6\], which is baked into its constant 's'",
        x=[1, 6],
    )


def test_a_baked_batch_is_reported_if_a_later_node_shows_it() -> None:
    refused(
        "(float[N,6] x, float[6,2] w) => (float[N,2] y) <int64[2] s = {8,-1}> { [view] r = Reshape(x, s) y = MatMul(r, w) }",
        ShapeError,
        r"does not work with x:4,6: Reshape 'view' makes \[8, -1\] of \[4, 6\]",
        x=[4, 6],
    )


def test_the_size_that_is_baked_in_is_fine() -> None:
    text = "(float[N,6] x) => (float[8,2,3] y) <int64[3] s = {8,2,3}> { r = Reshape(x, s) y = Relu(r) }"
    made = assert_undone(PASS, text, shape={"x": [8, 6]})
    assert dims(made.graph.input[0]) == [8, 6]


def test_sizes_that_do_not_fit_each_other_are_refused() -> None:
    refused(
        "(float[N,3] x, float[K,3] z) => (float[?,3] y) { y = Add(x, z) }",
        ShapeError,
        "does not work with",
        x=[2, 3],
        z=[5, 3],
    )


@pytest.mark.parametrize("dim", [0, "2.5", "16;", "None", "", "1e3", "a b", True, None, 2.5])
def test_an_invalid_dim_is_an_error(dim: Any) -> None:
    model = Model.from_proto(parse(TEXT))
    with pytest.raises(UsageError, match="expected a size from 1 on, a name"):
        model.set_input_shapes({"x": [dim, 3]})
    with pytest.raises(UsageError, match="expected a size from 1 on, a name"):
        model.set_input_shapes({}, {"N": dim})
    assert len(model.journal) == 0


def test_a_dim_can_be_fixed_by_its_name() -> None:
    made = assert_undone(PASS, TEXT, dim={"N": 2})
    assert [dims(info) for info in made.graph.input] == [[2, 3], [2, "M"]]
    made = assert_undone(PASS, TEXT, dim={"N": 2, "M": "width"}, shape={"z": [-1, 4]})
    assert [dims(info) for info in made.graph.input] == [[2, 3], [2, 4]]
    refused_dim(r"no input of the model has a dim 'K'; it has N, M", {"K": 2})
    refused_dim(r"did you mean 'N'\?", {"N_": 2, "N": 3})


def refused_dim(match: str, dim: dict[str, int | str]) -> None:
    with pytest.raises(UsageError, match=match):
        Model.from_proto(parse(TEXT)).set_input_shapes({}, dim)


def test_a_dim_cannot_be_two_sizes() -> None:
    with pytest.raises(UsageError, match="the shape of 'x' says 3 where the dim 'N' is 2"):
        Model.from_proto(parse(TEXT)).set_input_shapes({"x": [3, 3]}, {"N": 2})


def test_outputs_with_names_of_their_own_get_the_sizes() -> None:
    text = "(float[N,3] x) => (float[MatMully_dim_0,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }"
    made = assert_undone(PASS, text, shape={"x": [4, 3]})
    assert dims(made.graph.output[0]) == [4, 2]


def test_a_renamed_input_has_its_dims() -> None:
    model = Model.from_proto(parse("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }"))
    get_pass("rename", tensors={"x": "image"}).apply(model)
    get_pass("const_input_shape", dim={"N": 4}).apply(model)
    assert model.main.inputs[0].static_shape == (4, 3)
