"""The arguments of PopRT's passes, as options of tiered's."""

from typing import Any

import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tests.small import ops, proto
from tiered.compat import poprt
from tiered.compat.poprt.arguments import options_of
from tiered.compat.poprt.passes import get_pass as get_poprt_pass
from tiered.support.errors import TargetError, UsageError
from tiered.testing import parse


def test_options_have_the_names_of_poprt() -> None:
    text = "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"

    def first_dims(made: onnx.ModelProto) -> list[int]:
        return [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]

    assert first_dims(poprt.get_pass("const_batch_size", const_batch_size=4).run(proto(text))) == [
        4,
        3,
    ]
    assert first_dims(poprt.get_pass("const_batch_size", 5).run(proto(text))) == [5, 3]
    shape = {"x": [2, 3]}
    assert first_dims(
        poprt.get_pass("const_input_shape", const_input_shape=shape)(proto(text))
    ) == [2, 3]
    large = "g (float[8] x) => (float[8] y) <float[8] w> { a = Exp(w)  y = Add(x, a) }"
    given = proto(large)
    given.graph.initializer.add(name="w", data_type=1, dims=[8], float_data=[1.0] * 8)
    for limit, left in ((31, ["Exp", "Add"]), (32, ["Add"]), (-1, ["Add"])):
        assert ops(poprt.get_pass("constant_folding", max_tensor_size=limit)(given)) == left
    assert ops(poprt.get_pass("constant_folding", 31)(given)) == ["Exp", "Add"]


def test_an_alias_of_two_passes_runs_both() -> None:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x)  y = Abs(x) }"
    made = poprt.get_pass("delete_isolated")(proto(text))
    assert (ops(made), len(made.graph.initializer)) == (["Abs"], 0)
    with pytest.raises(UsageError, match="takes 0 arguments, not 1"):
        poprt.get_pass("delete_isolated", 1)


def test_types_are_written_as_poprt_writes_them() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { a = Neg(x) y = Abs(a) }"
    for name in ("shape_inference", "ShapeInference"):
        assert [info.name for info in poprt.get_pass(name)(parse(text)).graph.value_info] == ["a"]
    assert not poprt.get_pass("shape_inference", annotate=False)(parse(text)).graph.value_info


GELU_OF_PRODUCT = """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}>
    { [n] h = MatMul(x, w)  y = Gelu(h) }"""


def test_halves_skip_operators() -> None:
    for lower in (
        poprt.get_pass("float_to_half", ["Gelu"]),
        poprt.get_pass("Float2Half", skip_op_types=["Gelu"]),
    ):
        assert ops(lower(parse(GELU_OF_PRODUCT, opset=21))) == [
            "Cast", "MatMul", "Cast", "Gelu",
        ]  # fmt: skip


def test_checkpoints_and_cuts_have_the_arguments_of_poprt() -> None:
    model = parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    for given in (
        poprt.get_pass("add_checkpoints", checkpoints=["a"]),
        poprt.get_pass("add_checkpoints", ["a"]),
    ):
        assert [info.name for info in given.run(model).graph.output] == ["y", "a"]
    for node in model.graph.node:
        node.name = node.output[0]
    cuts = poprt.get_pass("manual_sharding", sharding_info={"a": 1}, pipelining_info={"a": 0})
    marked = cuts.run(model).graph.node
    said = [{entry.key: entry.value for entry in node.metadata_props} for node in marked]
    assert said == [{"tiered.device": "1", "tiered.stage": "0"}, {"tiered.stage": "1"}]


PRODUCT = """(float[4,2] x) => (float[4,3] y) <float[2,3] w = {1,2,3,4,5,6}, float[3] b = {7,8,9}> {
    p = MatMul(x, w)  y = Add(p, b) }"""


@pytest.mark.parametrize(
    ("entry", "last"),
    [
        ("2", "Concat"),
        (2, "Concat"),
        ("2/output_channels/True", "Concat"),
        ("2/input_channels", "Concat"),
        ("2/reducing_dim/False", "Add"),
    ],
)
def test_products_are_serialized_by_a_dict(entry: object, last: str) -> None:
    made = poprt.get_pass("serialize_matmul", serialize_dict={"p": entry})(parse(PRODUCT))
    assert ops(made).count("MatMul") == 2
    assert ops(made)[-2:] == [last, "Add"]
    for name in ("serialize_matmul_add", "SerializeMatMulAdd"):
        made = poprt.get_pass(name, {"p/y": entry})(parse(PRODUCT))
        assert ops(made).count("MatMul") == 2
    assert ops(made)[-1] == last


def test_the_dims_of_a_product_are_those_of_popart() -> None:
    def parts(entry: str) -> list[list[int | str | None]]:
        made = poprt.get_pass("serialize_matmul", serialize_dict={"p": entry})(parse(PRODUCT))
        view = tiered.Model.from_proto(made)
        products = view.main.nodes_of("MatMul")
        return [[*(v.shape or ())] for node in products for v in node.inputs if v is not None]

    assert parts("2/input_channels") == [[2, 2], [2, 3]] * 2
    assert parts("2/reducing_dim") == [[4, 1], [1, 3]] * 2
    assert parts("3/output_channels") == [[4, 2], [2, 1]] * 3


def test_a_wrong_dim_of_a_product_is_an_error_in_the_words_of_poprt() -> None:
    with pytest.raises(UsageError, match=r"'2/columns' of 'p' has no dim 'columns'; .*output_cha"):
        poprt.get_pass("serialize_matmul", serialize_dict={"p": "2/columns"})


def test_packing_has_the_argument_of_poprt() -> None:
    model = parse("(float[B,S,4] x) => (float[B,4] y) <int64 z = {0}> { y = Gather<axis=1>(x, z) }")
    made = poprt.get_pass("packed_transformer", {"max_valid_num": 40}).run(model)
    assert made.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 40
    with pytest.raises(UsageError, match="max_valid_num is a number from 0 on, not -1"):
        poprt.get_pass("packed_transformer", {"max_valid_num": -1}).run(model)
    args = {"max_valid_num": 40, "segment_max_size": {"x": 3}, "head_pattern": "x"}
    assert poprt.get_pass("PackedTransformer", args).run(model) == made
    with pytest.raises(UsageError, match="takes no 'max_valid_nu'; did you mean 'max_valid_num'"):
        poprt.get_pass("PackedTransformer", {"max_valid_nu": 4})


@pytest.mark.parametrize("name", ["serialize_matmul", "serialize_matmul_add"])
def test_a_product_that_is_not_there_is_an_error(name: str) -> None:
    model = parse("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, x) }")
    with pytest.raises(TargetError, match="is named 'typo'"):
        poprt.get_pass(name, serialize_dict={"typo": "2/output_channels"}).run(model)
    with pytest.raises(TargetError, match="is named 'typo'"):
        poprt.PassManager([poprt.get_pass(name, {"typo": 2})]).run(model)


def test_arguments_without_an_effect(capsys: pytest.CaptureFixture[str]) -> None:
    model = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    half = poprt.passes.Float2Half(skip_op_types=[], enable_avoid_overflow_patterns=True)
    assert ops(half(model)) == ["Cast", "Relu", "Cast"]
    poprt.passes.ModelOverview(use_print=True)(model)
    assert "1 Relu" in capsys.readouterr().err
    with pytest.raises(UsageError, match="use_print=False has no equivalent"):
        poprt.passes.ModelOverview(use_print=False)


@pytest.mark.parametrize(
    ("args", "kwargs", "twice"),
    [
        ((["Gelu"],), {"skip_op_types": ["Relu"]}, "skip_op_types"),
        ((), {"checkpoints": ["a"], "tensors": ["b"]}, "tensors"),
        (({"max_valid_num": 3},), {"max_valid_num": 4}, "max_valid_num"),
    ],
)
def test_two_values_of_one_option_are_an_error(args: Any, kwargs: Any, twice: str) -> None:
    names = {"skip_op_types": "float_to_half", "tensors": "add_checkpoints"}
    name = names.get(twice, "packed_transformer")
    with pytest.raises(UsageError, match=f"^{name}: '{twice}' is given twice"):
        poprt.get_pass(name, *args, **kwargs)


def test_more_arguments_than_options_are_an_error() -> None:
    assert poprt.get_pass("manual_sharding", {"a": 1}, {"a": 0}).name == "rewrite_annotated_ops"
    with pytest.raises(UsageError, match="manual_sharding takes 2 arguments, not 3"):
        poprt.get_pass("manual_sharding", {"a": 1}, {"a": 0}, 3)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "expected"),
    [
        ("rewrite_annotated_ops", ({"a": 1, "b": 2},), {}, {"sharding": ["a=1", "b=2"]}),
        ("rewrite_annotated_ops", (["a=1"],), {}, {"sharding": ["a=1"]}),
        ("serialize_matmul", ({"a": "4/input_channels"},), {}, {"split": ["a=4/rows"]}),
        (
            "serialize_matmul",
            (),
            {"serialize_dict": {"a": "4/reducing_dim/KEEP_PRECISION"}},
            {"split": ["a=4/inner"]},
        ),
        (
            "serialize_matmul",
            ({"a": "2/output_channels", "b": 3},),
            {},
            {"split": ["a=2/columns", "b=3"]},
        ),
        ("auto_insert_remap", (), {"remap_mode": "after_matmul"}, {"remap_mode": ["after_matmul"]}),
        ("auto_insert_remap", (["a", "b"],), {}, {"remap_mode": ["a", "b"]}),
        ("shape_inference", (), {}, {"annotate": True}),
        ("infer_shapes", (), {}, {}),
        ("float_to_half", (), {"enable_avoid_overflow_patterns": False}, {}),
        (
            "packed_transformer",
            ({"dynamic_groups": 1, "inputs": ["x"]},),
            {"max_valid_num": 2},
            {"inputs": ["x"], "max_valid_num": 2},
        ),
        ("fold_constant", (3,), {}, {"max_tensor_size": 3}),
    ],
)
def test_arguments_become_options(name: str, args: Any, kwargs: Any, expected: Any) -> None:
    assert options_of(tiered.get_pass(name), name, args, kwargs) == expected


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_an_accepted_argument_has_values_without_effect_only(value: object) -> None:
    pass_ = tiered.get_pass("model_overview")
    assert options_of(pass_, "overview", (), {"use_print": True}) == {}
    expected = [] if value == 1 else [value]
    for each in expected:
        with pytest.raises(UsageError, match=f"overview: use_print={each!r} has no equivalent"):
            options_of(pass_, "overview", (), {"use_print": each})


def test_arguments_of_each_pass_become_options() -> None:
    names = {"shown": lambda *args, **more: str(get_poprt_pass(*args, **more).lifted())}
    assert_values(__file__, names)
