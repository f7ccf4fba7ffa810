"""Which shapes inputs may get, and what the declarations of the model say afterwards."""

from typing import Any

import onnx
import pytest

from tests.small import content, named, parsed
from tiered import Model, ShapeError, UsageError
from tiered.graph.shape_inference.set_input_shapes import (
    _impossible_reshapes,
    _suspects,
    check_shapes,
    declare_known_sizes,
    declared_dims,
    named_dims,
    set_input_shapes,
    with_dims,
)
from tiered.testing import parse

TEXT = "(float[N,3] x, float[N,M] z, seq(float[N]) q) => (float[N,3] y) { y = Relu(x) }"


def dims(info: onnx.ValueInfoProto) -> list[int | str]:
    shape = info.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in shape]


def refused(model: Model, error: type[Exception], shapes: Any, given: Any = None) -> str:
    before = content(model)
    with pytest.raises(error) as caught:
        set_input_shapes(model, shapes, given)
    assert content(model) == before
    return str(caught.value)


# --- dims by their own names ----------------------------------------------------------------------


def test_dims_of_inputs_are_known_as_they_are_declared() -> None:
    model = parsed("(float[N,3] x, float[?,N] z, float s) => (float[N,3] y) { y = Relu(x) }")
    assert declared_dims(model) == {"x": ("N", 3), "z": (None, "N"), "s": ()}
    assert named_dims(model) == {"N": [("x", 0), ("z", 1)]}


@pytest.mark.parametrize(
    ("shapes", "given", "expected"),
    [
        ({}, {"N": 2}, {"x": [2, -1], "z": [2, -1]}),
        ({}, {"M": "m"}, {"z": [-1, "m"]}),
        ({"x": [2, 3]}, {"N": 2}, {"x": [2, 3], "z": [2, -1]}),
        ({"x": [-1, 3]}, {"N": 2}, {"x": [2, 3], "z": [2, -1]}),
        ({"x": ["N", 3]}, {"N": 2}, {"x": [2, 3], "z": [2, -1]}),
        ({"x": [4, 3]}, {"M": 2}, {"x": [4, 3], "z": [-1, 2]}),
        ({"x": [4, 3]}, {"N": "batch"}, {"x": [4, 3], "z": ["batch", -1]}),
        ({"x": [4, 3, 1]}, {"N": 2}, {"x": [4, 3, 1], "z": [2, -1]}),
        ({"x": [4, 3]}, {}, {"x": [4, 3]}),
    ],
)
def test_dims_by_name_complete_the_shapes(shapes: Any, given: Any, expected: Any) -> None:
    assert with_dims(parsed(TEXT), shapes, given) == expected


@pytest.mark.parametrize(
    ("shapes", "given", "because"),
    [
        ({}, {"n": 2}, "no input of the model has a dim 'n'; it has N, M"),
        ({"x": [4, 3]}, {"N": 2}, "the shape of 'x' says 4 where the dim 'N' is 2"),
        ({"x": ["b", 3]}, {"N": 2}, "the shape of 'x' says b where the dim 'N' is 2"),
        ({"x": "4,3"}, {}, "the shape of 'x' is '4,3'; expected a list of dims"),
        ({"x": 4}, {}, "the shape of 'x' is 4; expected a list of dims"),
        ({"x": [0, 3]}, {}, "the shape of 'x' has the dim 0; expected a size from 1 on"),
        ({"x": [2.5, 3]}, {}, "the shape of 'x' has the dim 2.5; expected a size"),
        ({}, {"N": 0}, "the dim 'N' is to be 0; expected a size from 1 on"),
        ({}, {"N": True}, "the dim 'N' is to be True; expected a size"),
    ],
)
def test_what_is_no_dim_is_an_error(shapes: Any, given: Any, because: str) -> None:
    assert refused(parsed(TEXT), UsageError, shapes, given).startswith(because)


def test_a_model_without_named_dims_says_so() -> None:
    model = parsed("(float[2,?] x) => (float[2,?] y) { y = Relu(x) }")
    because = "no input of the model has a dim 'N'; all of them have sizes or no names"
    assert refused(model, UsageError, {}, {"N": 2}) == because


# --- shapes of inputs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "shapes", "because"),
    [
        (UsageError, {"w": [2]}, "the model has no input 'w'; it has x, z, q"),
        (ShapeError, {"q": [2]}, "input 'q' is no dense tensor and has no shape to set"),
        (ShapeError, {"x": [2]}, "input 'x' has 2 dims (float[N,3]), not 1"),
        (ShapeError, {"x": [2, 4]}, "dim 1 of input 'x' is 3 (float[N,3]), it cannot be 4"),
        (ShapeError, {"x": [2, "k"]}, "dim 1 of input 'x' is 3 (float[N,3]), it cannot be k"),
        (ShapeError, {"x": [2, 3], "z": [4, 5]}, "the dim 'N' would be both 2 and 4"),
    ],
)
def test_a_shape_fits_its_input(error: type[Exception], shapes: Any, because: str) -> None:
    model = parsed(TEXT)
    assert refused(model, error, shapes) == because
    with pytest.raises(error):
        check_shapes(model, shapes)


def test_shapes_that_fit_pass_the_check_and_change_nothing() -> None:
    model = parsed(TEXT)
    before = content(model)
    check_shapes(model, {"x": [2, 3], "z": [2, "k"]})
    set_input_shapes(model, {"x": [-1, 3], "z": ["N", -5]})
    set_input_shapes(model, {})
    assert content(model) == before


def test_sizes_and_names_go_into_all_declarations() -> None:
    proto = parse("(float[N,3] x, float[N,M] z) => (float[N,3] y, float[N,M] w)"
                  " { y = Relu(x) k = Neg(z) w = Abs(k) }")  # fmt: skip
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("k", 1, ["N", "M"]))
    model = Model.from_proto(proto)
    set_input_shapes(model, {"z": [-1, 7]}, {"N": "batch"})
    made = model.to_proto().graph
    infos = (*made.input, *made.output, *made.value_info)
    assert [dims(info) for info in infos] == [
        ["batch", 3], ["batch", 7], ["batch", 3], ["batch", 7], ["batch", 7]
    ]  # fmt: skip
    assert named(model, "k").shape == ("batch", 7)
    model.check_view(types=True)


def test_an_input_without_a_shape_gets_one() -> None:
    proto = parse("(float[] x, float z) => (float[] y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    model = Model.from_proto(proto)
    set_input_shapes(model, {"x": [2, "k"]})
    made = model.to_proto().graph.input
    assert dims(made[0]) == [2, "k"]
    assert named(model, "y").shape == (2, "k")


def test_an_input_may_become_a_scalar() -> None:
    proto = parse("(float[] x) => (float[] y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    model = Model.from_proto(proto)
    set_input_shapes(model, {"x": []})
    assert model.to_proto().graph.input[0].type.tensor_type.HasField("shape")
    assert named(model, "y").shape == ()


def test_declarations_get_the_sizes_that_follow() -> None:
    proto = parse("(float[2,3] x) => (float[A,B] y, float[2,C] w)"
                  " { h = Relu(x) y = Concat<axis=0>(h, h) w = Neg(h) }")  # fmt: skip
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 1, ["P", 3]))
    model = Model.from_proto(proto)
    declare_known_sizes(model)
    made = model.to_proto().graph
    assert [dims(info) for info in (*made.output, *made.value_info)] == [[4, 3], [2, 3], [2, 3]]
    assert dims(made.input[0]) == [2, 3]
    mark = model.mark()
    declare_known_sizes(model)
    assert model.mark() == mark  # nothing is new


def test_declarations_of_local_functions_stay() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21, "local": 1]>
        g (float[N] x) => (float[N] y) { y = local.f(x) }
        <domain: "local", opset_import: ["": 21]> f (v) => (u) { t = Neg(v) u = Abs(t) }"""
    )
    proto.functions[0].value_info.append(onnx.helper.make_tensor_value_info("t", 1, ["N"]))
    model = Model.from_proto(proto)
    set_input_shapes(model, {"x": [4]})
    assert dims(model.to_proto().functions[0].value_info[0]) == ["N"]


# --- sizes that the model does not work with ------------------------------------------------------

STOCK = """int64[2] t = {2,6}, int64[2] u = {-1,6}, int64[2] zero = {0,6}, int64[2] nought = {0,-1},
    float[5] five = {1,2,3,4,5}, float[1] one = {1}"""


@pytest.mark.parametrize(
    ("node", "size", "because"),
    [
        ("Reshape(x, t)", 5, "Reshape 'y' makes [2, 6] of [5, 3], which is baked into its constant 't'"),
        ("Reshape(x, u)", 5, "Reshape 'y' makes [-1, 6] of [5, 3], which is baked into its constant 'u'"),
        ("Reshape(x, zero)", 5, "Reshape 'y' makes [0, 6] of [5, 3], which is baked into its constant 'zero'"),
        ("Add(x, five)", 5, "Add 'y' cannot broadcast [5, 3] and [5]"),
        ("Reshape(x, t)", 4, None),
        ("Reshape(x, u)", 4, None),
        ("Reshape(x, nought)", 4, None),
        ("Add(x, one)", 4, None),
    ],
)  # fmt: skip
def test_a_constant_that_needs_another_size_is_named(
    node: str, size: int, because: str | None
) -> None:
    model = parsed(f"(float[N,3] x) => (float[?,?] y) <{STOCK}> {{ [y] y = {node} }}")
    if because is None:
        set_input_shapes(model, {"x": [size, 3]})
        return
    text = refused(model, ShapeError, {"x": [size, 3]})
    assert text == f"the model does not work with x:{size},3: {because}"


def test_a_target_that_is_computed_is_named_as_such() -> None:
    model = parsed(
        "(float[N,3] x) => (float[?,?] y) <int64[1] a = {2}, int64[1] b = {6}>"
        " { t = Concat<axis=0>(a, b) [y] y = Reshape(x, t) }"
    )
    text = refused(model, ShapeError, {"x": [5, 3]})
    assert text.endswith("Reshape 'y' makes [2, 6] of [5, 3], which is computed as its target 't'")


def test_a_zero_is_a_size_with_allowzero() -> None:
    text = (
        "(float[N,3] x) => (float[?,?] y) <int64[2] t = {0,3}> { y = Reshape<allowzero=1>(x, t) }"
    )
    assert "makes [0, 3] of [5, 3]" in refused(parsed(text), ShapeError, {"x": [5, 3]})


def test_a_body_that_may_never_run_may_compute_another_target() -> None:
    model = parsed(
        """(float[N,3] x, bool c) => (float[?,?] y) <int64[1] a = {2}, int64[1] b = {6}> {
        y = If(c) <then_branch = t () => (float[?,?] p) {
                s = Concat<axis=0>(a, b) p = Reshape(x, s) },
            else_branch = e () => (float[?,?] q) { q = Identity(x) }> }"""
    )
    set_input_shapes(model, {"x": [5, 3]})
    assert named(model, "x").shape == (5, 3)


def test_a_batch_in_a_target_is_suspected_where_onnx_complains() -> None:
    # onnx refuses the product; the Reshape to a batch of 2 made the wrong rows.
    model = parsed(
        "(float[N,4] x, float[4,N] k) => (float[?,?] y) <int64[2] t = {2,-1}>"
        " { r = Reshape(x, t) y = MatMul(r, k) }"
    )
    text = refused(model, ShapeError, {"x": [4, 4], "k": [4, 4]})
    assert "Reshape 'r' makes [2, -1] of [4, 4]" in text


def test_reshapes_that_no_size_of_the_data_allows_and_those_that_may_fix_the_batch() -> None:
    for nodes, impossible, suspected in (
        ("y = Reshape(x, six)", [], ["6"]),
        ("y = Reshape(x, five)", ["5"], ["5"]),
        ("y = Reshape(x, two)", [], []),
        ("y = Reshape(x, copy)", [], []),
        ("y = Reshape(x, zeros)", ["2, 3, 0"], []),
        ("y = Reshape<allowzero = 1>(x, copy)", ["0, 3"], []),
        ("y = Reshape(x, rest)", [], ["3, -1"]),
        ("y = Reshape(x, odd)", ["4, -1"], ["4, -1"]),
        ("y = Reshape(x, one)", [], []),
        ("y = Reshape(x, at)", [], []),
        ("y = Reshape(v, six)", [], []),
        ("y = acme.Reshape(x, five)", [], []),
        ("y = Reshape(none, rest)", [], ["3, -1"]),
        ("y = Reshape(none, nought)", ["0, -1"], []),
        ("s = Shape(v)  y = Reshape(x, s)", [], []),
        ("y = Reshape(u, unit)", [], []),
    ):
        text = f"""(float[2,3] x, float[N,3] v, int64[1] at) => (y) <int64[1] six = {{6}},
            int64[1] five = {{5}}, int64[2] two = {{2,3}}, int64[2] copy = {{0,3}},
            int64[3] zeros = {{2,3,0}}, int64[2] rest = {{3,-1}}, int64[2] odd = {{4,-1}},
            int64[2] one = {{1,6}}, float[0,3] none = {{}}, int64[2] nought = {{0,-1}},
            float u = {{1}}, int64[0] unit = {{}}> {{ {nodes} }}"""
        model = parsed(text)
        for found, sizes in ((_impossible_reshapes, impossible), (_suspects, suspected)):
            said = [each.partition("makes [")[2].partition("] of")[0] for each in found(model)]
            assert said == sizes, (nodes, found)


def test_what_is_said_of_a_reshape_names_where_its_target_is_from() -> None:
    text = "(float[2,3] x) => (y) <int64[1] five = {5}> { y = Reshape(x, five) }"
    (said,) = _impossible_reshapes(parsed(text))
    assert said == "Reshape 'y' makes [5] of [2, 3], which is baked into its constant 'five'"
    text = (
        "(float[2,3] x) => (y) { s = Size(x)  z = Add(s, s)  t = Reshape(z, z)  y = Reshape(x, w) }"
    )
    text = text.replace("t = Reshape(z, z)", "w = Unsqueeze(z, o)").replace(
        " {", " <int64[1] o = {0}> {", 1
    )
    (said,) = _impossible_reshapes(parsed(text))
    assert said == "Reshape 'y' makes [12] of [2, 3], which is computed as its target 'w'"


def test_a_dim_that_is_kept_at_one_input_gets_the_size_of_the_other() -> None:
    model = parsed("(float[N,3] x, float[N,M] z, float[?,?] u) => (y) { y = Relu(x) }")
    set_input_shapes(model, {"x": [-1, 3], "z": [2, -1], "u": [4, 5]})
    assert [named(model, name).shape for name in "xzu"] == [(2, 3), (2, "M"), (4, 5)]
